// The unit of losses that large outputs would make too large for 32 bits: those of the range of an int8 output have a
// loss below the largest, and so a gradient.
#pragma once

#include "core/image/image_format.hpp"
#include "core/zo/options.hpp"

namespace pmt {

// With this one, sums over 512 samples of the largest loss still fit int64.
constexpr int32_t largest_loss_shift = 24;

// Losses are kept in units of 2^shift times those of loss_units.hpp: 0 for outputs in whose range no squared error is
// too large, and for losses that grow with the output and not with its square. Otherwise squared_error has room for
// twice the range, as the logits, which are accumulators, leave that of the int8 output.
int32_t loss_shift(Loss loss, const TensorRecord& output);

// A sum of losses in the units of loss_units.hpp, between -INT64_MAX and INT64_MAX.
int64_t in_loss_units(int64_t sum, int32_t shift);

// The targets that squared_error tells apart from every value that the int8 output holds.
struct TargetRange {
  float low, high;
};
TargetRange target_range(const TensorRecord& output);

}  // namespace pmt
