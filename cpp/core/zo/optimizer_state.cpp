#include "core/zo/optimizer_state.hpp"

#include "core/base/arithmetic.hpp"

namespace pmt {
namespace {

constexpr float adam_epsilon = 1e-8f;
constexpr float most_updates = 16777216.0f;  // a float counts no further

int64_t trained_elements(const TrainerOptions& options, const Layer& layer) {
  return static_cast<int64_t>(trained_weights(options, layer)) + trained_biases(options, layer);
}

int32_t moments(const TrainerOptions& options) { return static_cast<int32_t>(options.optimizer); }

// An overflow of extreme options leaves no infinity behind, which no later step could get rid of.
float bounded(float value) { return clamp(value, -1e30f, 1e30f); }

}  // namespace

int64_t optimizer_state_values(const TrainerOptions& options, const Layer& layer) {
  return moments(options) * trained_elements(options, layer);
}

LayerOptimizerState layer_optimizer_state(float* values, const TrainerOptions& options, const Layer& layer) {
  LayerOptimizerState state;
  const int64_t elements = trained_elements(options, layer);
  if (moments(options) > 0) state.first = values;
  if (moments(options) > 1) state.second = values + elements;
  return state;
}

OptimizerState OptimizerState::take(Arena& arena, const TrainerOptions& options, const Layer* layers,
                                    int32_t layer_count, int32_t classes) {
  int64_t values = keeps_prediction(options) ? classes : 0;
  for (int32_t i = 0; i < layer_count; ++i) values += optimizer_state_values(options, layers[i]);
  const int64_t count = values > 0 ? values + 1 : 0;
  return {arena.take<float>(MemoryPart::optimizer, count), count};
}

LayerOptimizerState OptimizerState::of(const TrainerOptions& options, const Layer* layers, int32_t index) const {
  if (count == 0) return {};
  float* own = values + 1;
  for (int32_t i = 0; i < index; ++i) own += optimizer_state_values(options, layers[i]);
  LayerOptimizerState state = layer_optimizer_state(own, options, layers[index]);
  state.updates = static_cast<int32_t>(values[0]);
  return state;
}

float* OptimizerState::surprisal(const TrainerOptions& options, int32_t classes) const {
  return keeps_prediction(options) ? values + count - classes : nullptr;
}

void OptimizerState::clear() const {
  for (int64_t i = 0; i < count; ++i) values[i] = 0.0f;
}

void OptimizerState::count_update() const {
  if (count > 0) values[0] += 1.0f;
}

Status OptimizerState::check() const {
  for (int64_t i = 0; i < count; ++i) {
    if (!is_finite(values[i])) return {Code::optimizer_state};
  }
  const bool counted = count == 0 || (values[0] >= 0.0f && values[0] <= most_updates);
  return counted ? Status{} : Status{Code::optimizer_state};
}

float power(float base, int32_t exponent) {
  float result = 1.0f;
  for (; exponent > 0; exponent /= 2) {
    if (exponent % 2 != 0) result *= base;
    base *= base;
  }
  return result;
}

Moments::Moments(const TrainerOptions& options, const LayerOptimizerState& state)
    : optimizer_(options.optimizer),
      momentum_(options.momentum),
      beta2_(options.adam_beta2),
      first_(state.first),
      second_(state.second) {
  if (optimizer_ != Optimizer::adam) return;
  first_correction_ = 1.0f - power(momentum_, state.updates + 1);
  second_correction_ = 1.0f - power(beta2_, state.updates + 1);
}

void Moments::add(int64_t element, float gradient) const {
  float& first = first_[element];
  if (optimizer_ == Optimizer::momentum) {
    first = bounded(momentum_ * first + gradient);
    return;
  }
  float& second = second_[element];
  first = bounded(momentum_ * first + (1.0f - momentum_) * gradient);
  second = bounded(beta2_ * second + (1.0f - beta2_) * (gradient * gradient));
}

float Moments::direction(int64_t element) const {
  if (optimizer_ == Optimizer::momentum) return first_[element];
  const float first = first_[element] / first_correction_;
  return first / (__builtin_sqrtf(second_[element] / second_correction_) + adam_epsilon);
}

}  // namespace pmt
