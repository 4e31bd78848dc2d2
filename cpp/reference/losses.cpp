#include "reference/losses.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

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

namespace {

Vector<double> log_softmax(const Vector<double>& logits) {
  const Vector<double> shifted = logits - xt::amax(logits)();
  return shifted - std::log(xt::sum(xt::exp(shifted))());
}

double softplus(double x) { return std::max(x, 0.0) + std::log1p(std::exp(-std::abs(x))); }

}  // namespace

double squared_error(const Vector<double>& logits, const Vector<double>& targets) {
  return xt::mean(xt::square(logits - targets))();
}

double binary_cross_entropy(const Vector<double>& logits, const Vector<double>& targets) {
  double sum = 0.0;
  for (std::size_t c = 0; c < logits.size(); ++c) sum += softplus(logits(c)) - targets(c) * logits(c);
  return sum / static_cast<double>(logits.size());
}

double entropy(const Vector<double>& logits, double diversity, const Vector<double>& surprisal) {
  const Vector<double> logarithms = log_softmax(logits);
  return -xt::sum(xt::exp(logarithms) * (logarithms + diversity * surprisal))();
}

}  // namespace pmt::reference
