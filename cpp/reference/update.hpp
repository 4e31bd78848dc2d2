// Paper Eq. 10 in double.
#pragma once

#include "reference/tensors.hpp"

namespace pmt::reference {

// learning_rate * gradient / scale^2: quantization-aware scaling turns the gradient by the stored
// integer into a step of the stored integer.
double scaled_update(double gradient, double learning_rate, double scale);

// clamp(weight - round(update)) to -127..127, halves to even.
int8_t updated_weight(int8_t weight, double update);

// The same for a bias, clamped to int32.
int32_t updated_bias(int32_t bias, double update);

// Gradient-norm scaling, k / (k + dimension - 1).
double gradient_norm_scaling(double k, double dimension);

}  // namespace pmt::reference
