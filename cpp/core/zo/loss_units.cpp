#include "core/zo/loss_units.hpp"

namespace pmt {

int32_t arg_max(const float* logits, int32_t classes) {
  int32_t best = 0;
  for (int32_t c = 1; c < classes; ++c) {
    if (logits[c] > logits[best]) best = c;
  }
  return best;
}

bool have_loss(const float* logits, int32_t classes) {
  for (int32_t c = 0; c < classes; ++c) {
    if (logits[c] != logits[c]) return false;
  }
  return is_finite(logits[arg_max(logits, classes)]);
}

}  // namespace pmt
