#include "reference/training_step.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "reference/ops.hpp"

namespace pmt::reference {

Vector<double> weight_gradient(const Vector<double>& differences, const xt::xtensor<int8_t, 2>& signs) {
  return xt::sum(xt::view(differences, xt::all(), xt::newaxis()) * signs, {0});
}

xt::xtensor<double, 3> node_gradient(const Vector<double>& differences, const xt::xtensor<int8_t, 4>& signs,
                                     const Image& nodes, int32_t clamp_min, int32_t clamp_max) {
  const auto factors = xt::view(differences, xt::all(), xt::newaxis(), xt::newaxis(), xt::newaxis());
  const xt::xtensor<double, 3> sums = xt::sum(factors * signs, {0});
  const auto free = xt::cast<int32_t>(nodes) > clamp_min && xt::cast<int32_t>(nodes) < clamp_max;
  return xt::where(free, sums, 0.0);
}

xt::xtensor<double, 3> pooled_node_gradient(const Vector<double>& differences, const xt::xtensor<int8_t, 2>& signs,
                                            const Image& nodes, int32_t clamp_min, int32_t clamp_max) {
  const Vector<double> sums = weight_gradient(differences, signs);
  const auto is_free = xt::cast<int32_t>(nodes) > clamp_min && xt::cast<int32_t>(nodes) < clamp_max;
  const xt::xtensor<double, 3> free = xt::where(is_free, 1.0, 0.0);
  const Vector<double> count = xt::sum(free, {0, 1});
  xt::xtensor<double, 3> gradient = xt::zeros_like(free);
  for (size_t y = 0; y < nodes.shape(0); ++y) {
    for (size_t x = 0; x < nodes.shape(1); ++x) {
      for (size_t c = 0; c < nodes.shape(2); ++c) {
        if (free(y, x, c) != 0.0) gradient(y, x, c) = std::round(64.0 * sums(c) / count(c));
      }
    }
  }
  return gradient;
}

xt::xtensor<double, 4> conv2d_gradient(const xt::xtensor<double, 3>& nodes, const Image& input, int32_t input_zero,
                                       const Window& window) {
  const std::array<size_t, 4> shape = {nodes.shape(2), static_cast<size_t>(window.kernel_h),
                                       static_cast<size_t>(window.kernel_w), input.shape(2)};
  xt::xtensor<double, 4> gradient = xt::zeros<double>(shape);
  for (int32_t y = 0; y < static_cast<int32_t>(nodes.shape(0)); ++y) {
    for (int32_t x = 0; x < static_cast<int32_t>(nodes.shape(1)); ++x) {
      const Patch values = patch(input, input_zero, window, y, x);
      for (size_t c = 0; c < shape[0]; ++c) xt::view(gradient, c) += nodes(y, x, c) * values;
    }
  }
  return gradient;
}

xt::xtensor<double, 3> depthwise_gradient(const xt::xtensor<double, 3>& nodes, const Image& input, int32_t input_zero,
                                          const Window& window) {
  const size_t channels = nodes.shape(2), multiplier = channels / input.shape(2);
  const std::array<size_t, 3> shape = {static_cast<size_t>(window.kernel_h), static_cast<size_t>(window.kernel_w),
                                       channels};
  xt::xtensor<double, 3> gradient = xt::zeros<double>(shape);
  for (int32_t y = 0; y < static_cast<int32_t>(nodes.shape(0)); ++y) {
    for (int32_t x = 0; x < static_cast<int32_t>(nodes.shape(1)); ++x) {
      const Patch values = patch(input, input_zero, window, y, x);
      for (size_t c = 0; c < channels; ++c) {
        xt::view(gradient, xt::all(), xt::all(), c) +=
            nodes(y, x, c) * xt::view(values, xt::all(), xt::all(), c / multiplier);
      }
    }
  }
  return gradient;
}

Vector<double> bias_gradient(const xt::xtensor<double, 3>& nodes) { return xt::sum(nodes, {0, 1}); }

Vector<int8_t> perturb(const Vector<int8_t>& values, const Vector<int8_t>& signs, int32_t mu, int32_t low,
                       int32_t high) {
  const Vector<int32_t> moved = xt::cast<int32_t>(values) + mu * xt::cast<int32_t>(signs);
  return xt::cast<int8_t>(xt::clip(moved, low, high));
}

Vector<int8_t> perturb_free(const Vector<int8_t>& values, const Vector<int8_t>& signs, int32_t mu, int32_t low,
                            int32_t high) {
  return xt::where(values > low && values < high, perturb(values, signs, mu, low, high), values);
}

Vector<int8_t> node_signs(const Vector<int8_t>& signs, size_t positions) {
  Vector<int8_t> nodes = xt::zeros<int8_t>({positions * signs.size()});
  for (size_t i = 0; i < nodes.size(); ++i) nodes(i) = signs(i % signs.size());
  return nodes;
}

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

double scaled_update(double gradient, double learning_rate, double scale) {
  return learning_rate * gradient / (scale * scale);
}

int8_t updated_weight(int8_t weight, double update) {
  return static_cast<int8_t>(std::clamp(weight - std::nearbyint(update), -127.0, 127.0));
}

int32_t updated_bias(int32_t bias, double update) {
  return static_cast<int32_t>(std::clamp(bias - std::nearbyint(update), -2147483648.0, 2147483647.0));
}

double gradient_norm_scaling(double k, double dimension) { return k / (k + dimension - 1.0); }

}  // namespace pmt::reference
