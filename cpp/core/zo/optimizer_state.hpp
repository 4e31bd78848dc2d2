// What the update of a layer remembers of earlier steps: float32 values, 0 before the first step. They
// belong to a checkpoint as much as the weights do.
#pragma once

#include "core/zo/layer.hpp"

namespace pmt {

// By element, the trained weights first, then the trained biases.
struct UpdateMemory {
  float* noise = nullptr;   // one value: share of noise in the gradient, a fading mean; measured scaling
  float* first = nullptr;   // momentum, or Adam's first moment
  float* second = nullptr;  // Adam's second moment
  int32_t updates = 0;      // that the values have seen
};

// Values of a layer; 0 where the options remember nothing.
int64_t update_memory_values(const TrainerOptions& options, const Layer& layer);

// In this order in `values`: noise, first, second. `updates` is left 0.
UpdateMemory update_memory_in(float* values, const TrainerOptions& options, const Layer& layer);

// The gradient of one element goes in, in the order of the steps; the direction to step against comes
// out. Momentum: first = momentum * first + gradient. Adam (Kingma & Ba 2015, algorithm 1), with
// epsilon 1e-8.
class Moments {
 public:
  Moments(const TrainerOptions& options, const UpdateMemory& memory);

  void remember(int64_t element, float gradient) const;
  float direction(int64_t element) const;

 private:
  Optimiser optimiser_;
  float momentum_;
  float beta2_;
  float* first_;
  float* second_;
  // 1 - beta^t of this update, t from 1.
  float first_correction_ = 1.0f;
  float second_correction_ = 1.0f;
};

// base^exponent by repeated squaring: the same bits on every target. exponent >= 0.
float power(float base, int32_t exponent);

}  // namespace pmt
