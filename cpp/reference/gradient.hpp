// The sums behind the gradient estimates, in double. All are exact for the sizes of the tests.
#pragma once

#include "reference/tensors.hpp"

namespace pmt::reference {

// Weight perturbation: sum over q of differences[q] * signs[q][i]; signs are [query][weight].
Vector<double> weight_gradient(const Vector<double>& differences, const xt::xtensor<int8_t, 2>& signs);

// Node perturbation: the same by node, 0 where the node stands at a bound of its clamp.
// signs are [query][height][width][channels].
xt::xtensor<double, 3> node_gradient(const Vector<double>& differences, const xt::xtensor<int8_t, 4>& signs,
                                     const Image& nodes, int32_t clamp_min, int32_t clamp_max);

// Pooled node perturbation: signs[q][channel] move all nodes of a channel. Each node that is not at a bound of its
// clamp gets round(64 * sum / number of them), to the nearest, halves away from zero.
xt::xtensor<double, 3> pooled_node_gradient(const Vector<double>& differences, const xt::xtensor<int8_t, 2>& signs,
                                            const Image& nodes, int32_t clamp_min, int32_t clamp_max);

// Chain rule through a convolution: weights[c][k] = sum over positions of nodes[..][c] * patch[k].
xt::xtensor<double, 4> conv2d_gradient(const xt::xtensor<double, 3>& nodes, const Image& input, int32_t input_zero,
                                       const Window& window);

// Through a depthwise convolution: [kernel_h][kernel_w][out].
xt::xtensor<double, 3> depthwise_gradient(const xt::xtensor<double, 3>& nodes, const Image& input, int32_t input_zero,
                                          const Window& window);

// Through the bias: sum over positions.
Vector<double> bias_gradient(const xt::xtensor<double, 3>& nodes);

}  // namespace pmt::reference
