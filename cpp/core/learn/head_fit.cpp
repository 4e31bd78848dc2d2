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

}  // namespace

void HeadFit::start(HeadObjective& objective, const SampleRange& range, const HeadPrior& prior, float strength,
                    const FitLimits& limits, const FitMemory& memory) {
  *this = HeadFit();
  objective_ = &objective;
  range_ = range;
  prior_ = &prior;
  strength_ = strength / static_cast<float>(objective.classes());
  limits_ = limits;
  memory_ = memory;
}

// The mean loss with the penalty, and the gradient of both.
Status HeadFit::penalized(float* loss, float* value) {
  PMT_RETURN_IF_ERROR(objective_->gradient(range_, memory_.head, memory_.gradient, loss));
  float squares = 0.0f;
  for (int32_t f = 0; f <= objective_->features(); ++f) {
    for (int32_t k = 0; k < objective_->stride(); ++k) {
      const int32_t i = f * objective_->stride() + k;
      const float apart = memory_.head[i] - prior_->at(*objective_, f, k);
      memory_.gradient[i] += strength_ * apart;
      squares += apart * apart;
    }
  }
  *value = *loss + 0.5f * strength_ * squares;
  return {};
}

// Newton's step was too long, or the value is as low as float32 tells. Whether the fit goes on.
bool HeadFit::take_back() {
  const bool goes_on = ++halvings_ <= most_halvings;
  if (goes_on) length_ *= 0.5f;
  add_scaled(memory_.head, -length_, memory_.direction, objective_->coefficients());
  return goes_on;
}

// The next direction; whether it goes down.
bool HeadFit::turn(float square) {
  const int32_t count = objective_->coefficients();
  float keep = first_ ? 0.0f : (square - dot(memory_.gradient, memory_.last_gradient, count)) / last_square_;
  if (!(keep > 0.0f)) keep = 0.0f;
  for (int32_t i = 0; i < count; ++i) memory_.direction[i] = keep * memory_.direction[i] - memory_.gradient[i];
  if (dot(memory_.direction, memory_.gradient, count) < 0.0f) return true;
  for (int32_t i = 0; i < count; ++i) memory_.direction[i] = -memory_.gradient[i];
  return square > 0.0f;
}

// Newton's step along the direction; 0 where the value does not curve.
Status HeadFit::lengthen(float* length) {
  const int32_t count = objective_->coefficients();
  float curvature = 0.0f;
  PMT_RETURN_IF_ERROR(objective_->curvature(range_, memory_.head, memory_.direction, &curvature));
  const float reach = dot(memory_.direction, memory_.direction, count);
  curvature += strength_ * reach;
  *length = 0.0f;
  if (!(curvature > 0.0f)) return {};
  const float longest = longest_step / __builtin_sqrtf(reach);
  *length = -dot(memory_.direction, memory_.gradient, count) / curvature;
  if (*length > longest) *length = longest;
  return {};
}

Status HeadFit::step(bool* done) {
  *done = true;
  if (steps_ == limits_.steps) return {};
  ++steps_;
  const int32_t count = objective_->coefficients();
  float loss = 0.0f, value = 0.0f;
  PMT_RETURN_IF_ERROR(penalized(&loss, &value));
  if (!first_ && !(value <= lowest_)) {
    *done = !take_back();
    return {};
  }
  lowest_ = value;
  loss_ = loss;
  halvings_ = 0;
  const float square = dot(memory_.gradient, memory_.gradient, count);
  if (square < limits_.least_slope * limits_.least_slope || !turn(square)) return {};
  PMT_RETURN_IF_ERROR(lengthen(&length_));
  if (length_ == 0.0f) return {};
  add_scaled(memory_.head, length_, memory_.direction, count);
  float* const passed = memory_.last_gradient;
  memory_.last_gradient = memory_.gradient;
  memory_.gradient = passed;
  last_square_ = square;
  first_ = false;
  *done = false;
  return {};
}

}  // namespace pmt
