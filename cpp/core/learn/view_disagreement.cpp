#include "core/learn/view_disagreement.hpp"

#include "core/base/arithmetic.hpp"
#include "core/zo/loss.hpp"

namespace pmt {

void write_surprisal(const Views& views, int64_t* sums, float* surprisal) {
  for (int32_t c = 0; c < views.classes; ++c) sums[c] = 0;
  for (int32_t v = 0; v < views.count; ++v) {
    for (int32_t i = 0; i < views.images; ++i) add_prediction(views.row(v, i), views.classes, sums);
  }
  for (int32_t c = 0; c < views.classes; ++c) surprisal[c] = surprisal_of(sums[c], views.count * views.images);
}

int32_t disagreement(const Views& views, int32_t image, const float* surprisal) {
  int64_t sum = 0;
  int32_t pairs = 0;
  for (int32_t v = 0; v < views.count; ++v) {
    for (int32_t w = 0; w < views.count; ++w) {
      if (v == w && views.count > 1) continue;
      sum += prediction_cross_entropy(views.row(v, image), views.row(w, image), views.classes, surprisal);
      ++pairs;
    }
  }
  return pairs > 0 ? static_cast<int32_t>(divide_rounded(sum, pairs)) : 0;
}

}  // namespace pmt
