// Where requantization may add the bias to the int32 sums, round without a bound, and leave the clamp to
// the saturation of int8: sums are known to be small, and outputs may be all of int8.
//
// The rule is (float(sum) + float(bias)) * scale. Integers up to 2^24 are exact floats, so that for
// sums and biases no larger it is float(sum + bias) * scale, the same rounding of the same number;
// and a scale of at most 32 keeps the product inside int32. That is every layer but one with a dead
// channel, whose bias stands at a limit of int32, with more than 514 taps, or with a narrower range.
#pragma once

#include <cstdint>
#include <cstring>

#include "core/kernels/table.hpp"

namespace pmt::host {

constexpr int32_t modest_taps = (1 << 24) / (255 * 128);
constexpr uint32_t modest_bias = 1 << 24;
constexpr uint32_t modest_scale = 0x42000000;  // 32.0f; positive floats are in the order of their bits

// Whether channels first .. first + channels - 1 are. Integers only: the compiler makes vectors of it.
inline bool is_modest(const LinearArgs& args, int32_t taps, int32_t first, int32_t channels) {
  if (taps > modest_taps || args.clamp_min > -128 || args.clamp_max < 127) return false;
  uint32_t outside = 0;
  for (int32_t c = first; c < first + channels; ++c) {
    uint32_t scale;
    std::memcpy(&scale, args.scales + c, sizeof scale);
    const uint32_t distance = static_cast<uint32_t>(args.bias[c]) + modest_bias;
    outside |= static_cast<uint32_t>(distance > 2 * modest_bias) | static_cast<uint32_t>(scale > modest_scale);
  }
  return outside == 0;
}

}  // namespace pmt::host
