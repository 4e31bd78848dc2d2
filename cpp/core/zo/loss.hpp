// The losses of logits and their gradients, fixed-point, see loss_units.hpp; and the loss of a step, as its options
// choose it: the one place from which queries, the clean loss and the exact gradient of a linear head have it.
#pragma once

#include "core/zo/step_context.hpp"

namespace pmt {

// -log softmax(logits)[label], at most 1024.
int32_t cross_entropy(const float* logits, int32_t classes, int32_t label);

// softmax(logits) - one_hot(label), the exact gradient of the loss by the logits. Zeros where there is no softmax.
void cross_entropy_gradient(const float* logits, int32_t classes, int32_t label, int32_t* gradient);

// One target a class: values, or the one-hot vector of a label.
struct Target {
  int32_t label;
  const float* values = nullptr;

  float at(int32_t c) const { return values != nullptr ? values[c] : (c == label ? 1.0f : 0.0f); }
};

// The mean over the classes of (logit - target)^2, in units of 2^shift, see loss_range.hpp.
int32_t squared_error(const float* logits, int32_t classes, const Target& target, int32_t shift);
void squared_error_gradient(const float* logits, int32_t classes, const Target& target, int32_t shift,
                            int32_t* gradient);

// The mean over the classes of log(1 + e^logit) - target * logit: each class by itself is there or not.
int32_t binary_cross_entropy(const float* logits, int32_t classes, const Target& target);
void binary_cross_entropy_gradient(const float* logits, int32_t classes, const Target& target, int32_t* gradient);

// Entropy of p = softmax(logits) (Tent, Wang et al. 2021), less diversity * sum_c p_c * surprisal_c. With -log of the
// mean prediction as the surprisal that is the first-order form of its negative entropy (SHOT, Liang et al. 2020).
struct EntropyTerms {
  float diversity;
  const float* surprisal;  // one a class; null: none
};
int32_t entropy(const float* logits, int32_t classes, const EntropyTerms& terms);
void entropy_gradient(const float* logits, int32_t classes, const EntropyTerms& terms, int32_t* gradient);

// The mean over p = softmax(logits) of -log q_c - surprisal_c, q = softmax(others).
int32_t prediction_cross_entropy(const float* logits, const float* others, int32_t classes, const float* surprisal);

// Adds softmax(logits), fixed-point, to sums, one a class; nothing where there is no softmax.
void add_prediction(const float* logits, int32_t classes, int64_t* sums);

// -log of the mean probability of a class, by the sum over `samples` predictions.
float surprisal_of(int64_t sum, int32_t samples);

// A loss of `count` rows of logits, all of one sample, by a function of the host's. It writes fixed-point losses;
// false: it failed, and the step with it.
struct LossFunction {
  void* context;
  bool (*losses)(void* context, const float* logits, int32_t count, int32_t sample, int32_t* losses);
};

// The sample that logits are of.
struct ScoredSample {
  int32_t index;  // in the batch
  Target target;
};

// A sample without a label, for a loss that needs none.
constexpr int32_t no_label = -1;

// One loss for each of `count` rows of logits.
Status losses_of(const StepContext& context, const ScoredSample& sample, const float* logits, int32_t count,
                 int32_t* losses);

// The gradient of a loss that has one, by the logits.
void loss_gradient(const StepContext& context, const ScoredSample& sample, const float* logits, int32_t* gradient);

}  // namespace pmt
