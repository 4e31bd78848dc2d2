// Losses that compare each logit with its own target, as means over the classes; fixed-point, see loss_units.hpp.
#pragma once

#include <cstdint>

namespace pmt {

// One target a class: values, or the one-hot vector of a label.
struct Target {
  int32_t label;
  const float* values = nullptr;

  float at(int32_t c) const { return values != nullptr ? values[c] : (c == label ? 1.0f : 0.0f); }
};

// d^2 of d = logit - target.
int32_t squared_error(const float* logits, int32_t classes, const Target& target);
void squared_error_gradient(const float* logits, int32_t classes, const Target& target, int32_t* gradient);

// d^2 / 2 where |d| <= delta, delta * (|d| - delta / 2) beyond (Huber 1964).
int32_t huber(const float* logits, int32_t classes, const Target& target, float delta);
void huber_gradient(const float* logits, int32_t classes, const Target& target, float delta, int32_t* gradient);

// log(1 + e^logit) - target * logit: each class by itself is there or not.
int32_t binary_cross_entropy(const float* logits, int32_t classes, const Target& target);
void binary_cross_entropy_gradient(const float* logits, int32_t classes, const Target& target, int32_t* gradient);

}  // namespace pmt
