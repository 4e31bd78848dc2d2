// The arithmetic of a training step: perturbations, and in double losses, the sums behind the gradient estimates, which
// are exact for the sizes of the tests, and updates.
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

// clamp(values + mu * signs), paper Eq. 7.
Vector<int8_t> perturb(const Vector<int8_t>& values, const Vector<int8_t>& signs, int32_t mu, int32_t low,
                       int32_t high);

// The same where the value lies strictly between the bounds; elsewhere the value stays.
Vector<int8_t> perturb_free(const Vector<int8_t>& values, const Vector<int8_t>& signs, int32_t mu, int32_t low,
                            int32_t high);

// The signs of channels as one sign for each node of a plane of `positions` positions, in order.
Vector<int8_t> node_signs(const Vector<int8_t>& signs, size_t positions);

// -log softmax(logits)[label] and its gradient by the logits.
double cross_entropy(const Vector<double>& logits, std::size_t label);
Vector<double> cross_entropy_gradient(const Vector<double>& logits, std::size_t label);

// Targets hold one value a class: the one-hot vector of a label, or any.
double squared_error(const Vector<double>& logits, const Vector<double>& targets);
double binary_cross_entropy(const Vector<double>& logits, const Vector<double>& targets);

// The entropy of p = softmax(logits), less diversity * sum_c p_c * surprisal_c.
double entropy(const Vector<double>& logits, double diversity, const Vector<double>& surprisal);

// Paper Eq. 10: learning_rate * gradient / scale^2: quantization-aware scaling turns the gradient by the stored
// integer into a step of the stored integer.
double scaled_update(double gradient, double learning_rate, double scale);

// clamp(weight - round(update)) to -127..127, halves to even.
int8_t updated_weight(int8_t weight, double update);

// The same for a bias, clamped to int32.
int32_t updated_bias(int32_t bias, double update);

// Gradient-norm scaling, k / (k + dimension - 1).
double gradient_norm_scaling(double k, double dimension);

}  // namespace pmt::reference
