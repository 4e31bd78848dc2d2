// Losses of the softmax of the logits; fixed-point, see loss_units.hpp.
#pragma once

#include <cstdint>

namespace pmt {

// -log softmax(logits)[label], at most 1024.
int32_t cross_entropy(const float* logits, int32_t classes, int32_t label);

// softmax(logits) - one_hot(label), the exact gradient of the loss by the logits. Zeros where there is no softmax.
void cross_entropy_gradient(const float* logits, int32_t classes, int32_t label, int32_t* gradient);

// Cross-entropy with (1 - smoothing) * one_hot(label) + smoothing / classes (Szegedy et al. 2016).
int32_t smoothed_cross_entropy(const float* logits, int32_t classes, int32_t label, float smoothing);
void smoothed_cross_entropy_gradient(const float* logits, int32_t classes, int32_t label, float smoothing,
                                     int32_t* gradient);

// Entropy of p = softmax(logits) (Tent, Wang et al. 2021), less diversity * sum_c p_c * surprisal_c. With -log of the
// mean prediction as the surprisal that is the first-order form of its negative entropy (SHOT, Liang et al. 2020).
struct EntropyTerms {
  float diversity;
  const float* surprisal;  // one a class; null: none
};
int32_t entropy(const float* logits, int32_t classes, const EntropyTerms& terms);
void entropy_gradient(const float* logits, int32_t classes, const EntropyTerms& terms, int32_t* gradient);

// Adds softmax(logits), fixed-point, to sums of so many classes; nothing where there is no softmax.
void add_prediction(const float* logits, int32_t classes, int64_t* sums);

}  // namespace pmt
