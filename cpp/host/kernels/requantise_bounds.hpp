// Where requantisation may add the bias to the int32 sums, and round without a bound.
//
// The rule is (float(sum) + float(bias)) * scale. Integers up to 2^24 are exact floats, so that for
// sums and biases no larger it is float(sum + bias) * scale, the same rounding of the same number;
// and a scale of at most 32 keeps the product inside int32. That is every layer but one with a dead
// channel, whose bias stands at a limit of int32, or with more than 514 taps.
#pragma once

#include <cstdint>

namespace pmt::host {

constexpr int32_t modest_taps = (1 << 24) / (255 * 128);
constexpr int32_t modest_bias = 1 << 24;
constexpr float modest_scale = 32.0f;

inline bool is_modest(int32_t taps, const int32_t* bias, const float* scales, int32_t channels) {
  int32_t outside = taps > modest_taps ? 1 : 0;
  for (int32_t c = 0; c < channels; ++c) {
    outside |= bias[c] > modest_bias || bias[c] < -modest_bias || !(scales[c] <= modest_scale) ? 1 : 0;
  }
  return outside == 0;
}

}  // namespace pmt::host
