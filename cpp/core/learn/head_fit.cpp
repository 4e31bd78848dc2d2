#include "core/learn/head_fit.hpp"

namespace pmt {
namespace {

constexpr int32_t most_halvings = 4;
constexpr float longest_step = 1000.0f;  // longer ones could not be taken back: float32 would round the head away

// In four sums, which vector units take at once.
float dot(const float* a, const float* b, int32_t count) {
  float sums[4] = {};
  for (int32_t i = 0; i < count; i += 4) {
    for (int32_t k = 0; k < 4; ++k) sums[k] += a[i + k] * b[i + k];
  }
  return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

void add_scaled(float* to, float factor, const float* values, int32_t count) {
  for (int32_t i = 0; i < count; ++i) to[i] += factor * values[i];
}

// The mean loss with the penalty, and the gradient of both.
Status penalized(HeadObjective& objective, const SampleRange& range, const HeadPrior& prior, float strength,
                 const FitMemory& memory, float* value) {
  float loss = 0.0f;
  PMT_RETURN_IF_ERROR(objective.gradient(range, memory.head, memory.gradient, &loss));
  float squares = 0.0f;
  for (int32_t f = 0; f <= objective.features(); ++f) {
    for (int32_t k = 0; k < objective.stride(); ++k) {
      const int32_t i = f * objective.stride() + k;
      const float apart = memory.head[i] - prior.at(objective, f, k);
      memory.gradient[i] += strength * apart;
      squares += apart * apart;
    }
  }
  *value = loss + 0.5f * strength * squares;
  return {};
}

// The next direction; whether it goes down.
bool turn(const FitMemory& memory, int32_t count, bool first, float square, float last_square) {
  float keep = first ? 0.0f : (square - dot(memory.gradient, memory.last_gradient, count)) / last_square;
  if (!(keep > 0.0f)) keep = 0.0f;
  for (int32_t i = 0; i < count; ++i) memory.direction[i] = keep * memory.direction[i] - memory.gradient[i];
  if (dot(memory.direction, memory.gradient, count) < 0.0f) return true;
  for (int32_t i = 0; i < count; ++i) memory.direction[i] = -memory.gradient[i];
  return square > 0.0f;
}

}  // namespace

Status fit_head(HeadObjective& objective, const SampleRange& range, const HeadPrior& prior, float strength,
                const FitLimits& limits, FitMemory memory) {
  strength /= static_cast<float>(objective.classes());
  const int32_t count = objective.coefficients();
  float lowest = 0.0f, last_square = 0.0f, length = 0.0f;
  int32_t halvings = 0;
  bool first = true;
  for (int32_t step = 0; step < limits.steps; ++step) {
    float value = 0.0f;
    PMT_RETURN_IF_ERROR(penalized(objective, range, prior, strength, memory, &value));
    if (!first && !(value <= lowest)) {
      // Newton's step was too long, or the value is as low as float32 tells.
      const bool end = ++halvings > most_halvings;
      if (!end) length *= 0.5f;
      add_scaled(memory.head, -length, memory.direction, count);
      if (end) return {};
      continue;
    }
    lowest = value;
    halvings = 0;
    const float square = dot(memory.gradient, memory.gradient, count);
    if (square < limits.least_slope * limits.least_slope) return {};
    if (!turn(memory, count, first, square, last_square)) return {};
    float curvature = 0.0f;
    PMT_RETURN_IF_ERROR(objective.curvature(range, memory.head, memory.direction, &curvature));
    const float reach = dot(memory.direction, memory.direction, count);
    curvature += strength * reach;
    if (!(curvature > 0.0f)) return {};
    const float longest = longest_step / __builtin_sqrtf(reach);
    length = -dot(memory.direction, memory.gradient, count) / curvature;
    if (length > longest) length = longest;
    add_scaled(memory.head, length, memory.direction, count);
    float* const passed = memory.last_gradient;
    memory.last_gradient = memory.gradient;
    memory.gradient = passed;
    last_square = square;
    first = false;
  }
  return {};
}

}  // namespace pmt
