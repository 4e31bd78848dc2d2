// The losses of a sample's logits besides cross-entropy, in double. Targets hold one value a class: the one-hot
// vector of a label, or any.
#pragma once

#include "reference/tensors.hpp"

namespace pmt::reference {

// -log softmax(logits)[label] and its gradient by the logits, in double.

double cross_entropy(const Vector<double>& logits, std::size_t label);
Vector<double> cross_entropy_gradient(const Vector<double>& logits, std::size_t label);

double squared_error(const Vector<double>& logits, const Vector<double>& targets);
double binary_cross_entropy(const Vector<double>& logits, const Vector<double>& targets);

// The entropy of p = softmax(logits), less diversity * sum_c p_c * surprisal_c.
double entropy(const Vector<double>& logits, double diversity, const Vector<double>& surprisal);

}  // namespace pmt::reference
