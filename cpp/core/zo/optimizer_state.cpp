#include "core/zo/optimizer_state.hpp"

#include "core/base/arithmetic.hpp"

namespace pmt {
namespace {

constexpr float adam_epsilon = 1e-8f;

int64_t trained_elements(const TrainerOptions& options, const Layer& layer) {
  return static_cast<int64_t>(trained_weights(options, layer)) + trained_biases(options, layer);
}

int32_t moments(const TrainerOptions& options) { return static_cast<int32_t>(options.optimiser); }

bool measures_noise(const TrainerOptions& options) {
  return options.gradient_norm_scaling == GradientNormScaling::measured;
}

// An overflow of extreme options leaves no infinity behind, which no later step could get rid of.
float bounded(float value) { return clamp(value, -1e30f, 1e30f); }

}  // namespace

int64_t update_memory_values(const TrainerOptions& options, const Layer& layer) {
  return (measures_noise(options) ? 1 : 0) + moments(options) * trained_elements(options, layer);
}

UpdateMemory update_memory_in(float* values, const TrainerOptions& options, const Layer& layer) {
  UpdateMemory memory;
  if (measures_noise(options)) memory.noise = values++;
  const int64_t elements = trained_elements(options, layer);
  if (moments(options) > 0) memory.first = values;
  if (moments(options) > 1) memory.second = values + elements;
  return memory;
}

float power(float base, int32_t exponent) {
  float result = 1.0f;
  for (; exponent > 0; exponent /= 2) {
    if (exponent % 2 != 0) result *= base;
    base *= base;
  }
  return result;
}

Moments::Moments(const TrainerOptions& options, const UpdateMemory& memory)
    : optimiser_(options.optimiser),
      momentum_(options.momentum),
      beta2_(options.adam_beta2),
      first_(memory.first),
      second_(memory.second) {
  if (optimiser_ != Optimiser::adam) return;
  first_correction_ = 1.0f - power(momentum_, memory.updates + 1);
  second_correction_ = 1.0f - power(beta2_, memory.updates + 1);
}

void Moments::remember(int64_t element, float gradient) const {
  float& first = first_[element];
  if (optimiser_ == Optimiser::momentum) {
    first = bounded(momentum_ * first + gradient);
    return;
  }
  float& second = second_[element];
  first = bounded(momentum_ * first + (1.0f - momentum_) * gradient);
  second = bounded(beta2_ * second + (1.0f - beta2_) * (gradient * gradient));
}

float Moments::direction(int64_t element) const {
  if (optimiser_ == Optimiser::momentum) return first_[element];
  const float first = first_[element] / first_correction_;
  return first / (__builtin_sqrtf(second_[element] / second_correction_) + adam_epsilon);
}

}  // namespace pmt
