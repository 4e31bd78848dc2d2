#pragma once

#include "reference/tensors.hpp"

namespace pmt::reference {

// Output channel c sees input channel c / multiplier alone, multiplier = outputs / inputs:
// accumulator[y][x][c] = sum(patch(y, x)[..][c / multiplier] * weights[..][c]).
Sums depthwise_conv2d_sums(const Image& input, int32_t input_zero, const DepthwiseWeights& weights,
                           const Window& window, const Shape& out);

// requantize(accumulators).
Image depthwise_conv2d(const Image& input, int32_t input_zero, const DepthwiseWeights& weights, const Window& window,
                       const Requantization& to, const Shape& out);

}  // namespace pmt::reference
