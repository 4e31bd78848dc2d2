// What alignment measures, from its definitions.
#pragma once

#include <vector>

#include "reference/tensors.hpp"

namespace pmt::reference {

// Statistics of a layer's outputs in real units, from exact accumulators.

struct MeanAndDeviation {
  double mean, deviation;
};

// Statistics of (accumulator + bias) * scale in one channel, over all positions of all images; `scale` is
// s_x * s_w.
MeanAndDeviation channel_statistics(const std::vector<Sums>& images, int32_t channel, int32_t bias, double scale);

// Mean over all positions p of all images of (a(p) - mean a) * (b(p + (dy, dx)) - mean b), with 0 for a
// factor outside the image.
double autocovariance(const std::vector<Image>& images, int32_t a, int32_t b, int32_t dy, int32_t dx);

// The test-retest reliability of a channel.
// Pearson's correlation of the values of a channel at all positions of the first images with those at the same
// positions of the second ones; at least 0, and 1 where either is constant.
double reliability(const std::vector<Image>& first, const std::vector<Image>& second, int32_t channel);

// An image plus what another one has beyond the rounded means (halves up) of the squares around its pixels, clamped to
// int8. A square reaches a 16th of the shorter side (halves to even), at least 1, to every side, as far as it is
// inside.
Image noise_probe(const Image& image, const Image& other);

}  // namespace pmt::reference
