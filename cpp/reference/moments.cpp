#include "reference/moments.hpp"

#include <cmath>

namespace pmt::reference {
namespace {

// beta^(T - t) for t = 1 .. T.
Vector<double> decaying_weights(size_t count, double beta) {
  Vector<double> weights = xt::zeros<double>({count});
  for (size_t t = 0; t < count; ++t) weights(t) = std::pow(beta, static_cast<double>(count - 1 - t));
  return weights;
}

double weighted_mean(const Vector<double>& values, const Vector<double>& weights) {
  return xt::sum(values * weights)() / xt::sum(weights)();
}

}  // namespace

double momentum_direction(const Vector<double>& gradients, double momentum) {
  return xt::sum(gradients * decaying_weights(gradients.size(), momentum))();
}

double adam_direction(const Vector<double>& gradients, double beta1, double beta2) {
  const double mean = weighted_mean(gradients, decaying_weights(gradients.size(), beta1));
  const double squares = weighted_mean(xt::square(gradients), decaying_weights(gradients.size(), beta2));
  return mean / (std::sqrt(squares) + 1e-8);
}

}  // namespace pmt::reference
