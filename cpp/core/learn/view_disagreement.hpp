// A measure of a network that needs no label: how much its predictions of an image and of copies of it that were
// shifted a little disagree. It is low where a network is sure, and sure of the same for all of them.
#pragma once

#include <cstdint>

namespace pmt {

constexpr int32_t most_views = 8;

// Logits of views of the same images: [view][image][class].
struct Views {
  const float* logits;
  int32_t count, images, classes;

  const float* row(int32_t view, int32_t image) const {
    return logits + (static_cast<int64_t>(view) * images + image) * classes;
  }
};

// -log of the mean prediction of each class, over all images and views; `sums` of as many classes is overwritten.
void write_surprisal(const Views& views, int64_t* sums, float* surprisal);

// The mean, over ordered pairs of views of an image, of the cross-entropy of the first prediction with the second, less
// the first-order form of the entropy of the mean prediction: so a network that calls all images one class has no
// advantage. Of a single view it is the entropy, less the same. Fixed-point as a loss.
int32_t disagreement(const Views& views, int32_t image, const float* surprisal);

}  // namespace pmt
