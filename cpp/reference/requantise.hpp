// From real steps, or an accumulator, to an int8 output.
#pragma once

#include "reference/tensors.hpp"

namespace pmt::reference {

// clamp(round_half_even(steps) + zero_point)
int8_t quantise(float steps, const OutputRange& range);

// quantise((float(accumulator) + float(bias)) * scale)
int8_t requantise(int64_t accumulator, const Requantisation& to, int32_t channel);

// The same for every accumulator of a layer.
Image requantise(const Sums& accumulators, const Requantisation& to);

}  // namespace pmt::reference
