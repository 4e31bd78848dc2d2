// The memory of earlier steps in updates: float32 values, 0 before the first step. They belong to a
// checkpoint as much as the weights do.
#pragma once

#include "core/base/arena.hpp"
#include "core/zo/layer.hpp"

namespace pmt {

// One layer's, by element: the trained weights first, then the trained biases.
struct LayerOptimizerState {
  float* first = nullptr;   // momentum, or Adam's first moment
  float* second = nullptr;  // Adam's second moment
  int32_t updates = 0;      // that the values have seen
};

// Values of a layer; 0 where the options keep nothing.
int64_t optimizer_state_values(const TrainerOptions& options, const Layer& layer);

// In this order in `values`: first, second. `updates` is left 0.
LayerOptimizerState layer_optimizer_state(float* values, const TrainerOptions& options, const Layer& layer);

// All layers': the number of updates so far, then each layer's values in the order above; at the end one value a
// class where the mean prediction is kept. None where the options keep nothing.
struct OptimizerState {
  float* values;
  int64_t count;

  static OptimizerState take(Arena& arena, const TrainerOptions& options, const Layer* layers, int32_t layer_count,
                             int32_t classes);
  LayerOptimizerState of(const TrainerOptions& options, const Layer* layers, int32_t index) const;
  // -log of the mean prediction of the batch before; 0 before the first step. Null where it is not kept.
  float* surprisal(const TrainerOptions& options, int32_t classes) const;
  void clear() const;
  // After an update of every layer.
  void count_update() const;
  // Refuses what no training can have left.
  Status check() const;
};

// The gradient of one element goes in, in the order of the steps; the direction to step against comes
// out. Momentum: first = momentum * first + gradient. Adam (Kingma & Ba 2015, algorithm 1), with
// epsilon 1e-8.
class Moments {
 public:
  Moments(const TrainerOptions& options, const LayerOptimizerState& state);

  void add(int64_t element, float gradient) const;
  float direction(int64_t element) const;

 private:
  Optimizer optimizer_;
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
