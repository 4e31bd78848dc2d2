#include "core/zo/loss.hpp"

#include "core/zo/chosen_loss.hpp"
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

// The mean of term(logit, target).
template <typename Term>
int32_t mean_loss(const float* logits, int32_t classes, const Target& target, const Term& term) {
  if (!have_loss(logits, classes)) return largest_loss;
  float sum = 0.0f;
  for (int32_t c = 0; c < classes; ++c) sum += term(logits[c], target.at(c));
  return fixed_loss(sum / static_cast<float>(classes));
}

template <typename Slope>
void mean_gradient(const float* logits, int32_t classes, const Target& target, int32_t* gradient, const Slope& slope) {
  const bool exists = have_loss(logits, classes);
  for (int32_t c = 0; c < classes; ++c) {
    gradient[c] = exists ? fixed_gradient(slope(logits[c], target.at(c)) / static_cast<float>(classes)) : 0;
  }
}

float unit(int32_t shift) { return 1.0f / static_cast<float>(1 << shift); }

int32_t loss_of(const StepContext& context, const Target& target, const float* logits, int32_t classes) {
  const TrainerOptions& options = *context.options;
  if (is_loss(options, Loss::squared_error)) return squared_error(logits, classes, target, context.loss_shift);
  if (is_loss(options, Loss::binary_cross_entropy)) return binary_cross_entropy(logits, classes, target);
  if (is_loss(options, Loss::entropy)) return entropy(logits, classes, {options.diversity, context.surprisal});
  return cross_entropy(logits, classes, target.label);
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

int32_t squared_error(const float* logits, int32_t classes, const Target& target, int32_t shift) {
  const float one = unit(shift);
  return mean_loss(logits, classes, target, [one](float z, float y) { return one * (z - y) * (z - y); });
}

void squared_error_gradient(const float* logits, int32_t classes, const Target& target, int32_t shift,
                            int32_t* gradient) {
  const float two = 2.0f * unit(shift);
  mean_gradient(logits, classes, target, gradient, [two](float z, float y) { return two * (z - y); });
}

int32_t binary_cross_entropy(const float* logits, int32_t classes, const Target& target) {
  return mean_loss(logits, classes, target, [](float z, float y) { return softplus(z) - y * z; });
}

void binary_cross_entropy_gradient(const float* logits, int32_t classes, const Target& target, int32_t* gradient) {
  mean_gradient(logits, classes, target, gradient, [](float z, float y) { return sigmoid(z) - y; });
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

int32_t prediction_cross_entropy(const float* logits, const float* others, int32_t classes, const float* surprisal) {
  const Softmax softmax(logits, classes), other(others, classes);
  if (!softmax.exists() || !other.exists()) return largest_loss;
  float mean = 0.0f;
  for (int32_t c = 0; c < classes; ++c) {
    const float probability = softmax.at(c);
    if (probability > 0.0f) mean += probability * (other.minus_log(c) - surprisal[c]);
  }
  return fixed_loss(mean);
}

void add_prediction(const float* logits, int32_t classes, int64_t* sums) {
  const Softmax softmax(logits, classes);
  if (!softmax.exists()) return;
  for (int32_t c = 0; c < classes; ++c) sums[c] += fixed_probability(softmax.at(c));
}

float surprisal_of(int64_t sum, int32_t samples) {
  const float mean = to_float(sum) / (loss_one * static_cast<float>(samples));
  return log_at_least_one(1.0f / clamp(mean, 1.0f / loss_one, 1.0f));
}

Status losses_of(const StepContext& context, const ScoredSample& sample, const float* logits, int32_t count,
                 int32_t* losses) {
  const LossFunction* function = context.loss_function;
  if (function != nullptr) {
    const bool done = function->losses(function->context, logits, count, sample.index, losses);
    return done ? Status{} : Status{Code::loss_function};
  }
  if (context.options->loss == Loss::function) return {Code::option_loss};
  const int32_t classes = context.model().classes();
  for (int32_t i = 0; i < count; ++i) losses[i] = loss_of(context, sample.target, logits + i * classes, classes);
  return {};
}

void loss_gradient(const StepContext& context, const ScoredSample& sample, const float* logits, int32_t* gradient) {
  const TrainerOptions& options = *context.options;
  const int32_t classes = context.model().classes();
  if (is_loss(options, Loss::squared_error)) {
    squared_error_gradient(logits, classes, sample.target, context.loss_shift, gradient);
  } else if (is_loss(options, Loss::binary_cross_entropy)) {
    binary_cross_entropy_gradient(logits, classes, sample.target, gradient);
  } else if (is_loss(options, Loss::entropy)) {
    entropy_gradient(logits, classes, {options.diversity, context.surprisal}, gradient);
  } else {
    cross_entropy_gradient(logits, classes, sample.target.label, gradient);
  }
}

}  // namespace pmt
