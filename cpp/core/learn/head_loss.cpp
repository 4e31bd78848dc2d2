#include "core/learn/head_loss.hpp"

#include "core/zo/exponential.hpp"
#include "core/zo/loss_units.hpp"

namespace pmt {
namespace {

// The mean of term(c) over the classes.
template <typename Term>
float class_mean(int32_t classes, const Term& term) {
  float sum = 0.0f;
  for (int32_t c = 0; c < classes; ++c) sum += term(c);
  return sum / static_cast<float>(classes);
}

float cross_entropy_residuals(const float* logits, int32_t classes, int32_t label, float* residuals) {
  const float largest = logits[arg_max(logits, classes)], of_label = logits[label];
  float sum = 0.0f;
  for (int32_t c = 0; c < classes; ++c) {
    residuals[c] = exp_negative(logits[c] - largest);
    sum += residuals[c];
  }
  for (int32_t c = 0; c < classes; ++c) residuals[c] /= sum;
  residuals[label] -= 1.0f;
  return log_at_least_one(sum) - (of_label - largest);
}

// Variance of the direction over the prediction.
float cross_entropy_curvature(const float* logits, int32_t classes, const float* direction) {
  const float largest = logits[arg_max(logits, classes)];
  float sum = 0.0f, first = 0.0f, second = 0.0f;
  for (int32_t c = 0; c < classes; ++c) {
    const float weight = exp_negative(logits[c] - largest);
    sum += weight;
    first += weight * direction[c];
    second += weight * direction[c] * direction[c];
  }
  const float mean = first / sum;
  return second / sum - mean * mean;
}

}  // namespace

bool is_head_loss(Loss loss) {
  return loss == Loss::cross_entropy || loss == Loss::squared_error || loss == Loss::binary_cross_entropy;
}

float head_residuals(Loss loss, const float* logits, int32_t classes, const Target& target, float* residuals) {
  if (loss == Loss::cross_entropy) return cross_entropy_residuals(logits, classes, target.label, residuals);
  const bool squares = loss == Loss::squared_error;
  const float share = (squares ? 2.0f : 1.0f) / static_cast<float>(classes);
  return class_mean(classes, [&](int32_t c) {
    const float logit = logits[c], goal = target.at(c);
    residuals[c] = share * ((squares ? logit : sigmoid(logit)) - goal);
    return squares ? (logit - goal) * (logit - goal) : softplus(logit) - goal * logit;
  });
}

float head_curvature(Loss loss, const float* logits, int32_t classes, const float* direction) {
  if (loss == Loss::cross_entropy) return cross_entropy_curvature(logits, classes, direction);
  return class_mean(classes, [&](int32_t c) {
    const float probability = loss == Loss::squared_error ? 0.0f : sigmoid(logits[c]);
    const float second = loss == Loss::squared_error ? 2.0f : probability * (1.0f - probability);
    return second * direction[c] * direction[c];
  });
}

}  // namespace pmt
