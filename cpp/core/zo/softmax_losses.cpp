#include "core/zo/softmax_losses.hpp"

#include "core/zo/exponential.hpp"
#include "core/zo/loss_units.hpp"

namespace pmt {
namespace {

// softmax(logits)[c] = exp_negative(logits[c] - largest) / sum.
struct Softmax {
  const float* logits;
  float largest, sum;

  Softmax(const float* values, int32_t classes) : logits(values), largest(values[arg_max(values, classes)]), sum(0.0f) {
    for (int32_t c = 0; c < classes; ++c) sum += exp_negative(logits[c] - largest);
  }
  // Logits with a NaN, or infinity as the largest, have no softmax; else the largest logit alone gives 1.
  bool exists() const { return sum >= 1.0f; }
  float at(int32_t c) const { return exp_negative(logits[c] - largest) / sum; }
  float minus_log(int32_t c) const { return log_at_least_one(sum) - (logits[c] - largest); }
};

int32_t fixed_probability(float probability) { return static_cast<int32_t>(probability * loss_one + 0.5f); }

// Means over the prediction of -log p_c and of surprisal_c.
struct Costs {
  float entropy = 0.0f, diversity = 0.0f;
};

// A class whose probability is 0 adds nothing, though its logarithm is infinite.
Costs expected_costs(const Softmax& softmax, int32_t classes, const EntropyTerms& terms) {
  Costs costs;
  for (int32_t c = 0; c < classes; ++c) {
    const float probability = softmax.at(c);
    if (probability == 0.0f) continue;
    costs.entropy += probability * softmax.minus_log(c);
    if (terms.surprisal != nullptr) costs.diversity += probability * terms.surprisal[c];
  }
  return costs;
}

}  // namespace

int32_t cross_entropy(const float* logits, int32_t classes, int32_t label) {
  const Softmax softmax(logits, classes);
  if (!softmax.exists()) return largest_loss;
  const float loss = softmax.minus_log(label);
  return fixed_loss(loss < 0.0f ? 0.0f : loss);
}

void cross_entropy_gradient(const float* logits, int32_t classes, int32_t label, int32_t* gradient) {
  const Softmax softmax(logits, classes);
  for (int32_t c = 0; c < classes; ++c) {
    gradient[c] = 0;
    if (!softmax.exists()) continue;
    const int32_t fixed = fixed_probability(softmax.at(c));
    gradient[c] = c == label ? fixed - (1 << loss_fraction_bits) : fixed;
  }
}

int32_t smoothed_cross_entropy(const float* logits, int32_t classes, int32_t label, float smoothing) {
  const Softmax softmax(logits, classes);
  if (!softmax.exists()) return largest_loss;
  float all = 0.0f;
  for (int32_t c = 0; c < classes; ++c) all += softmax.minus_log(c);
  const float mean = all / static_cast<float>(classes);
  return fixed_loss((1.0f - smoothing) * softmax.minus_log(label) + smoothing * mean);
}

void smoothed_cross_entropy_gradient(const float* logits, int32_t classes, int32_t label, float smoothing,
                                     int32_t* gradient) {
  const Softmax softmax(logits, classes);
  const float every = smoothing / static_cast<float>(classes);
  for (int32_t c = 0; c < classes; ++c) {
    const float target = every + (c == label ? 1.0f - smoothing : 0.0f);
    gradient[c] = softmax.exists() ? fixed_gradient(softmax.at(c) - target) : 0;
  }
}

int32_t entropy(const float* logits, int32_t classes, const EntropyTerms& terms) {
  const Softmax softmax(logits, classes);
  if (!softmax.exists()) return largest_loss;
  const Costs costs = expected_costs(softmax, classes, terms);
  return fixed_loss(costs.entropy - terms.diversity * costs.diversity);
}

// By logit c: p_c * (-log p_c - entropy), less diversity * p_c * (surprisal_c - its mean).
void entropy_gradient(const float* logits, int32_t classes, const EntropyTerms& terms, int32_t* gradient) {
  const Softmax softmax(logits, classes);
  const bool exists = softmax.exists();
  const Costs costs = exists ? expected_costs(softmax, classes, terms) : Costs{};
  for (int32_t c = 0; c < classes; ++c) {
    gradient[c] = 0;
    const float probability = exists ? softmax.at(c) : 0.0f;
    if (probability == 0.0f) continue;
    float by_logit = softmax.minus_log(c) - costs.entropy;
    if (terms.surprisal != nullptr) by_logit -= terms.diversity * (terms.surprisal[c] - costs.diversity);
    gradient[c] = fixed_gradient(probability * by_logit);
  }
}

void add_prediction(const float* logits, int32_t classes, int64_t* sums) {
  const Softmax softmax(logits, classes);
  if (!softmax.exists()) return;
  for (int32_t c = 0; c < classes; ++c) sums[c] += fixed_probability(softmax.at(c));
}

}  // namespace pmt
