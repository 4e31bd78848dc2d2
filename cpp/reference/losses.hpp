// The losses of a sample's logits besides cross-entropy, in double. Targets hold one value a class: the one-hot
// vector of a label, or any.
#pragma once

#include "reference/tensors.hpp"

namespace pmt::reference {

double squared_error(const Vector<double>& logits, const Vector<double>& targets);
double huber(const Vector<double>& logits, const Vector<double>& targets, double delta);
double binary_cross_entropy(const Vector<double>& logits, const Vector<double>& targets);

// With (1 - smoothing) * one_hot(label) + smoothing / classes as the target.
double smoothed_cross_entropy(const Vector<double>& logits, std::size_t label, double smoothing);
// The entropy of p = softmax(logits), less diversity * sum_c p_c * surprisal_c.
double entropy(const Vector<double>& logits, double diversity, const Vector<double>& surprisal);

double hinge(const Vector<double>& logits, std::size_t label);
double ranking(const Vector<double>& logits, std::size_t label);
double zero_one(const Vector<double>& logits, std::size_t label, std::size_t top);

}  // namespace pmt::reference
