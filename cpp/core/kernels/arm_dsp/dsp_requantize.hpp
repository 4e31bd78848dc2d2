// The rule of requantize.hpp in fewer instructions, for the same bytes.
#pragma once

#include "core/base/arithmetic.hpp"
#include "core/kernels/dsp.hpp"
#include "core/kernels/table.hpp"

namespace pmt::dsp {

// The zero point and the bounds of a layer's outputs.
struct Range {
  int32_t zero, low, high;

  static Range of(const LinearArgs& args) { return {args.output_zero, args.clamp_min, args.clamp_max}; }

  bool is_whole() const { return low == -128 && high == 127; }

  int8_t from(int32_t sum, float bias, float scale) const {
    const float real = (static_cast<float>(sum) + bias) * scale;
    return static_cast<int8_t>(clamp(add_saturating(round_even(real), zero), low, high));
  }
};

}  // namespace pmt::dsp
