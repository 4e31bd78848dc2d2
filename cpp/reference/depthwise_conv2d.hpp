#pragma once

#include "reference/tensors.hpp"

namespace pmt::reference {

// Output channel c sees input channel c / multiplier alone, multiplier = outputs / inputs:
// out[y][x][c] = requantise(sum(patch(y, x)[..][c / multiplier] * weights[..][c])).
Image depthwise_conv2d(const Image& input, int32_t input_zero, const DepthwiseWeights& weights, const Window& window,
                       const Requantisation& to, const Shape& out);

}  // namespace pmt::reference
