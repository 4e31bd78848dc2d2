#pragma once

#include "reference/tensors.hpp"

namespace pmt::reference {

// accumulator[c] = sum((input - input_zero) * weights[c]), the input read in NHWC order.
Vector<int64_t> fully_connected_sums(const Image& input, int32_t input_zero, const DenseWeights& weights);

// out[c] = requantize(accumulator[c]).
Image fully_connected(const Image& input, int32_t input_zero, const DenseWeights& weights, const Requantization& to);

// Logits of a linear last op: (accumulator + bias) * scale, not rounded. `scales` are s_x * s_w.
Vector<float> logits(const Image& input, int32_t input_zero, const DenseWeights& weights, const Vector<int32_t>& bias,
                     const Vector<float>& scales);

}  // namespace pmt::reference
