// -log softmax(logits)[label] and its gradient by the logits, in double.
#pragma once

#include "reference/tensors.hpp"

namespace pmt::reference {

double cross_entropy(const Vector<double>& logits, std::size_t label);
Vector<double> cross_entropy_gradient(const Vector<double>& logits, std::size_t label);

}  // namespace pmt::reference
