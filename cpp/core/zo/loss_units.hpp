// Losses and their gradients by the logits as numbers: fixed-point with 20 fraction bits, so that sums over samples
// and queries are integers and do not depend on their order.
#pragma once

#include <cstdint>

#include "core/base/arithmetic.hpp"

namespace pmt {

constexpr int32_t loss_fraction_bits = 20;
constexpr float loss_one = 1048576.0f;
// Also the loss of logits that have none: one is NaN, or the largest is infinite. A model that is open makes no such
// logits, its scales forbid it: they come from other engines.
constexpr int32_t largest_loss = 1024 << loss_fraction_bits;

// Rounded to the nearest, between -1024 and 1024; NaN is the largest.
inline int32_t fixed_loss(float loss) {
  if (loss != loss) return largest_loss;
  const float scaled = clamp(loss, -1024.0f, 1024.0f) * loss_one;
  return static_cast<int32_t>(scaled < 0.0f ? scaled - 0.5f : scaled + 0.5f);
}

// The same of a gradient; NaN is 0.
inline int32_t fixed_gradient(float gradient) { return gradient == gradient ? fixed_loss(gradient) : 0; }

int32_t arg_max(const float* logits, int32_t classes);

// Whether no logit is NaN and the largest is finite.
bool have_loss(const float* logits, int32_t classes);

}  // namespace pmt
