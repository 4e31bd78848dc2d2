#include "reference/calibration.hpp"

#include <algorithm>

#include "reference/ops.hpp"
#include "reference/perturbation.hpp"

namespace pmt::reference {

double variance(const Vector<double>& values) {
  const double mean = xt::mean(values)();
  return xt::sum(xt::square(values - mean))() / (static_cast<double>(values.size()) - 1.0);
}

double free_input_squares(const Image& input, int32_t input_zero, const Window& window, const Image& nodes,
                          int32_t clamp_min, int32_t clamp_max, const Vector<float>& scales, bool depthwise) {
  double sum = 0.0;
  const size_t channels = nodes.shape(2), multiplier = depthwise ? channels / input.shape(2) : 1;
  for (size_t y = 0; y < nodes.shape(0); ++y) {
    for (size_t x = 0; x < nodes.shape(1); ++x) {
      const Patch values = patch(input, input_zero, window, static_cast<int32_t>(y), static_cast<int32_t>(x));
      for (size_t c = 0; c < channels; ++c) {
        if (scales(c) < 1e-6f || nodes(y, x, c) <= clamp_min || nodes(y, x, c) >= clamp_max) continue;
        const xt::xtensor<double, 3> squares = xt::square(xt::cast<double>(values));
        sum += depthwise ? xt::sum(xt::view(squares, xt::all(), xt::all(), c / multiplier))() : xt::sum(squares)();
      }
    }
  }
  return sum;
}

RegionInputs region_inputs(const Image& input, int32_t input_zero, const Window& window, const Image& nodes,
                           int32_t clamp_min, int32_t clamp_max, const Vector<float>& scales, size_t rows,
                           size_t columns, bool depthwise) {
  const size_t height = nodes.shape(0), width = nodes.shape(1), channels = nodes.shape(2);
  const size_t multiplier = depthwise ? channels / input.shape(2) : 1;
  RegionInputs found = {0.0, 0.0};
  for (size_t region = 0; region < rows * columns; ++region) {
    for (size_t c = 0; c < channels; ++c) {
      xt::xtensor<double, 3> sum = xt::zeros<double>(
          {static_cast<size_t>(window.kernel_h), static_cast<size_t>(window.kernel_w), input.shape(2)});
      double free = 0.0;
      for (size_t p = 0; p < height * width; ++p) {
        const size_t y = p / width, x = p % width;
        const bool here = region_of(y, height, rows) * columns + region_of(x, width, columns) == region;
        if (!here || scales(c) < 1e-6f || nodes(y, x, c) <= clamp_min || nodes(y, x, c) >= clamp_max) continue;
        sum += patch(input, input_zero, window, static_cast<int32_t>(y), static_cast<int32_t>(x));
        free += 1.0;
      }
      if (free == 0.0) continue;
      const xt::xtensor<double, 3> squares = xt::square(sum / free);
      found.mean_squares +=
          depthwise ? xt::sum(xt::view(squares, xt::all(), xt::all(), c / multiplier))() : xt::sum(squares)();
      found.columns += 1.0;
    }
  }
  return found;
}

double weight_error(double variance, double taps, const Vector<int32_t>& channel_mu, const Vector<float>& scales) {
  double sum = 0.0;
  for (size_t c = 0; c < scales.size(); ++c) {
    if (scales(c) < 1e-6f) continue;
    const double moved = channel_mu(c) * static_cast<double>(scales(c));
    sum += taps / (moved * moved);
  }
  return variance * sum;
}

double node_error(double variance, double mu, double input_scale, double output_scale, double input_squares) {
  const double ratio = input_scale / output_scale / mu;
  return variance * ratio * ratio * input_squares;
}

double pooled_bias(double node_norm, double region_norm, double input_scale, double output_scale, double nodes,
                   double input_squares, const RegionInputs& regions) {
  const double nodes_of_region = nodes / regions.columns, ratio = input_scale / output_scale;
  const double gradients = node_norm - region_norm / nodes_of_region;
  const double inputs = input_squares / nodes - regions.mean_squares / regions.columns;
  return ratio * ratio * std::max(gradients, 0.0) * std::max(inputs, 0.0);
}

}  // namespace pmt::reference
