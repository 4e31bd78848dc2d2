// From real steps, or an accumulator, to an int8 output.
#pragma once

#include "reference/tensors.hpp"

namespace pmt::reference {

// clamp(round_half_even(steps) + zero_point)
int8_t quantize(float steps, const OutputRange& range);

// quantize((float(accumulator) + float(bias)) * scale)
int8_t requantize(int64_t accumulator, const Requantization& to, int32_t channel);

// The same for every accumulator of a layer.
Image requantize(const Sums& accumulators, const Requantization& to);

}  // namespace pmt::reference
