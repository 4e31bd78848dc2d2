// int32 accumulator -> int8 output, the rule every kernel shares:
//   q = clamp(round_half_even((float(acc) + float(bias)) * scale) + zero_point)
// The bias is added in float: a dead channel's bias stands at the int32 limits and would wrap.
#pragma once

#include "core/base/arithmetic.hpp"

namespace pmt {

inline int8_t requantize(int32_t accumulator, int32_t bias, float scale, int32_t zero_point, int32_t low,
                         int32_t high) {
  const float real = (static_cast<float>(accumulator) + static_cast<float>(bias)) * scale;
  return static_cast<int8_t>(clamp(round_saturating(real) + zero_point, low, high));
}

// A run of channels. Pointers are restrict and the loop is free of branches, so that it vectorizes.
inline void requantize_row(const int32_t* __restrict accumulators, const int32_t* __restrict bias,
                           const float* __restrict scales, int32_t count, int32_t zero_point, int32_t low, int32_t high,
                           int8_t* __restrict output) {
  for (int32_t i = 0; i < count; ++i) {
    output[i] = requantize(accumulators[i], bias[i], scales[i], zero_point, low, high);
  }
}

}  // namespace pmt
