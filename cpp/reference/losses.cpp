#include "reference/losses.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

namespace pmt::reference {
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

double huber(const Vector<double>& logits, const Vector<double>& targets, double delta) {
  const Vector<double> distance = xt::abs(logits - targets);
  return xt::mean(xt::where(distance <= delta, 0.5 * xt::square(distance), delta * (distance - 0.5 * delta)))();
}

double binary_cross_entropy(const Vector<double>& logits, const Vector<double>& targets) {
  double sum = 0.0;
  for (std::size_t c = 0; c < logits.size(); ++c) sum += softplus(logits(c)) - targets(c) * logits(c);
  return sum / static_cast<double>(logits.size());
}

double smoothed_cross_entropy(const Vector<double>& logits, std::size_t label, double smoothing) {
  Vector<double> targets = xt::zeros_like(logits) + smoothing / static_cast<double>(logits.size());
  targets(label) += 1.0 - smoothing;
  return -xt::sum(targets * log_softmax(logits))();
}

double entropy(const Vector<double>& logits, double diversity, const Vector<double>& surprisal) {
  const Vector<double> logarithms = log_softmax(logits);
  return -xt::sum(xt::exp(logarithms) * (logarithms + diversity * surprisal))();
}

double hinge(const Vector<double>& logits, std::size_t label) {
  double worst = 0.0;
  for (std::size_t c = 0; c < logits.size(); ++c) {
    if (c != label) worst = std::max(worst, 1.0 + logits(c) - logits(label));
  }
  return worst;
}

double ranking(const Vector<double>& logits, std::size_t label) {
  double sum = 0.0;
  for (std::size_t c = 0; c < logits.size(); ++c) sum += c == label ? 0.0 : softplus(logits(c) - logits(label));
  return sum / static_cast<double>(logits.size() - 1);
}

double zero_one(const Vector<double>& logits, std::size_t label, std::size_t top) {
  std::vector<std::size_t> order(logits.size());
  for (std::size_t c = 0; c < order.size(); ++c) order[c] = c;
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return logits(a) > logits(b); });
  const auto place = std::find(order.begin(), order.end(), label) - order.begin();
  return static_cast<std::size_t>(place) < top ? 0.0 : 1.0;
}

}  // namespace pmt::reference
