#pragma once

#include "reference/tensors.hpp"

namespace pmt::reference {

// out[y][x][c] = requantise(sum(patch(y, x) * weights[c])).
Image conv2d(const Image& input, int32_t input_zero, const ConvWeights& weights, const Window& window,
             const Requantisation& to, const Shape& out);

}  // namespace pmt::reference
