#include "reference/cross_entropy.hpp"

#include <cmath>

namespace pmt::reference {

double cross_entropy(const Vector<double>& logits, std::size_t label) {
  const double largest = xt::amax(logits)();
  return std::log(xt::sum(xt::exp(logits - largest))()) - (logits(label) - largest);
}

Vector<double> cross_entropy_gradient(const Vector<double>& logits, std::size_t label) {
  const Vector<double> exponentials = xt::exp(logits - xt::amax(logits)());
  Vector<double> gradient = exponentials / xt::sum(exponentials)();
  gradient(label) -= 1.0;
  return gradient;
}

}  // namespace pmt::reference
