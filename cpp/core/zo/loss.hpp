// Softmax cross-entropy, the same bits on every target: no libm, basic float operations only.
#pragma once

#include <cstdint>

namespace pmt {

// Losses and node gradients of the head are fixed-point with 20 fraction bits, so that sums over
// samples and queries are integers and do not depend on their order.
constexpr int32_t loss_fraction_bits = 20;
constexpr float loss_one = 1048576.0f;
constexpr int32_t largest_loss = 1024 << loss_fraction_bits;

// e^x for x <= 0; 0 below -87, NaN for NaN. Relative error below 3e-7.
float exp_negative(float x);

// Natural logarithm of x >= 1. Absolute error below 2e-7 * max(1, log x).
float log_at_least_one(float x);

// -log softmax(logits)[label], fixed-point, at most 1024; so much where a logit is NaN or +infinity, or all are
// -infinity. A model that is open makes no such logits, its scales forbid it: they come from other engines.
int32_t cross_entropy(const float* logits, int32_t classes, int32_t label);

// softmax(logits) - one_hot(label), fixed-point: the exact gradient of the loss by the logits. Zeros where
// there is no softmax.
void cross_entropy_gradient(const float* logits, int32_t classes, int32_t label, int32_t* gradient);

int32_t arg_max(const float* logits, int32_t classes);

}  // namespace pmt
