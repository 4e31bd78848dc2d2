#include "reference/gradient.hpp"

#include <cmath>

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

}  // namespace pmt::reference
