#pragma once

#include "reference/tensors.hpp"

namespace pmt::reference {

// accumulator[y][x][c] = sum(patch(y, x) * weights[c]).
Sums conv2d_sums(const Image& input, int32_t input_zero, const ConvWeights& weights, const Window& window,
                 const Shape& out);

// requantize(accumulators).
Image conv2d(const Image& input, int32_t input_zero, const ConvWeights& weights, const Window& window,
             const Requantization& to, const Shape& out);

}  // namespace pmt::reference
