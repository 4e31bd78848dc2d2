#include "reference/ops.hpp"

#include <algorithm>
#include <cmath>

namespace pmt::reference {

int8_t quantize(float steps, const OutputRange& range) {
  const float bounded = std::clamp(steps, -1e6f, 1e6f);
  const auto rounded = static_cast<int32_t>(std::nearbyint(bounded));
  return static_cast<int8_t>(std::clamp(rounded + range.zero_point, range.low, range.high));
}

int8_t requantize(int64_t accumulator, const Requantization& to, int32_t channel) {
  const float sum = static_cast<float>(accumulator) + static_cast<float>(to.bias(channel));
  return quantize(sum * to.scales(channel), to.range);
}

Image requantize(const Sums& accumulators, const Requantization& to) {
  Image output(accumulators.shape());
  for (size_t y = 0; y < output.shape(0); ++y) {
    for (size_t x = 0; x < output.shape(1); ++x) {
      for (size_t c = 0; c < output.shape(2); ++c) {
        output(y, x, c) = requantize(accumulators(y, x, c), to, static_cast<int32_t>(c));
      }
    }
  }
  return output;
}

Patch patch(const Image& input, int32_t zero_point, const Window& window, int32_t out_y, int32_t out_x) {
  const Shape in = shape_of(input);
  const Shape size = {window.kernel_h, window.kernel_w, in.channels};
  Patch values = xt::zeros<int32_t>(make_image(size).shape());
  for (int32_t ky = 0; ky < window.kernel_h; ++ky) {
    for (int32_t kx = 0; kx < window.kernel_w; ++kx) {
      const int32_t y = out_y * window.stride_h - window.pad_top + ky;
      const int32_t x = out_x * window.stride_w - window.pad_left + kx;
      if (y < 0 || y >= in.height || x < 0 || x >= in.width) continue;
      for (int32_t c = 0; c < in.channels; ++c) values(ky, kx, c) = input(y, x, c) - zero_point;
    }
  }
  return values;
}

Image pad(const Image& input, int32_t zero_point, const Padding& padding) {
  const Shape in = shape_of(input);
  Image output =
      make_image({in.height + padding.top + padding.bottom, in.width + padding.left + padding.right, in.channels});
  output.fill(static_cast<int8_t>(zero_point));
  xt::view(output, xt::range(padding.top, padding.top + in.height), xt::range(padding.left, padding.left + in.width),
           xt::all()) = input;
  return output;
}

Image reshape(const Image& input, const Shape& out) {
  Image output = input;
  output.reshape({out.height, out.width, out.channels});
  return output;
}

namespace {

xt::xtensor<float, 3> real(const Quantized& tensor) {
  return xt::cast<float>(xt::cast<int32_t>(tensor.values) - tensor.zero_point) * tensor.scale;
}

}  // namespace

Image add(const Quantized& first, const Quantized& second, float output_scale, const OutputRange& range) {
  const xt::xtensor<float, 3> sum = real(first) + real(second);
  const xt::xtensor<float, 3> steps = sum / output_scale;
  Image output = make_image(shape_of(first.values));
  std::transform(steps.begin(), steps.end(), output.begin(), [&](float value) { return quantize(value, range); });
  return output;
}

Image concatenation(const Quantized& first, const Quantized& second, float output_scale, const OutputRange& range) {
  const auto requantized = [&](const Quantized& tensor) {
    Image output = tensor.values;
    const float ratio = tensor.scale / output_scale;
    const bool same = tensor.scale == output_scale && tensor.zero_point == range.zero_point;
    for (int8_t& value : output) {
      const auto steps = static_cast<float>(value - tensor.zero_point);
      value = quantize(same ? steps : steps * ratio, range);
    }
    return output;
  };
  return xt::concatenate(xt::xtuple(requantized(first), requantized(second)), 2);
}

Sums conv2d_sums(const Image& input, int32_t input_zero, const ConvWeights& weights, const Window& window,
                 const Shape& out) {
  Sums sums(make_image(out).shape());
  for (int32_t y = 0; y < out.height; ++y) {
    for (int32_t x = 0; x < out.width; ++x) {
      const Patch values = patch(input, input_zero, window, y, x);
      for (int32_t c = 0; c < out.channels; ++c) {
        const auto kernel = xt::view(weights, c, xt::all(), xt::all(), xt::all());
        sums(y, x, c) = xt::sum<int64_t>(values * kernel)();
      }
    }
  }
  return sums;
}

Sums depthwise_conv2d_sums(const Image& input, int32_t input_zero, const DepthwiseWeights& weights,
                           const Window& window, const Shape& out) {
  const int32_t multiplier = out.channels / shape_of(input).channels;
  Sums sums(make_image(out).shape());
  for (int32_t y = 0; y < out.height; ++y) {
    for (int32_t x = 0; x < out.width; ++x) {
      const Patch values = patch(input, input_zero, window, y, x);
      for (int32_t c = 0; c < out.channels; ++c) {
        const auto seen = xt::view(values, xt::all(), xt::all(), c / multiplier);
        const auto kernel = xt::view(weights, xt::all(), xt::all(), c);
        sums(y, x, c) = xt::sum<int64_t>(seen * kernel)();
      }
    }
  }
  return sums;
}

Vector<int64_t> fully_connected_sums(const Image& input, int32_t input_zero, const DenseWeights& weights) {
  const Vector<int64_t> values = xt::cast<int64_t>(xt::flatten(input)) - input_zero;
  return xt::sum<int64_t>(values * weights, {1});
}

Vector<float> logits(const Image& input, int32_t input_zero, const DenseWeights& weights, const Vector<int32_t>& bias,
                     const Vector<float>& scales) {
  const Vector<int64_t> sums = fully_connected_sums(input, input_zero, weights);
  return (xt::cast<float>(sums) + xt::cast<float>(bias)) * scales;
}

namespace {

// One channel of the input under a window.
xt::xtensor<int32_t, 2> pooled_values(const Image& input, const Window& window, int32_t out_y, int32_t out_x,
                                      int32_t channel) {
  const Shape in = shape_of(input);
  const int32_t top = out_y * window.stride_h - window.pad_top;
  const int32_t left = out_x * window.stride_w - window.pad_left;
  return xt::view(input, xt::range(std::max(top, 0), std::min(top + window.kernel_h, in.height)),
                  xt::range(std::max(left, 0), std::min(left + window.kernel_w, in.width)), channel);
}

template <typename Reduce>
Image pool(const Image& input, const Window& window, const Shape& out, Reduce reduce) {
  Image output = make_image(out);
  for (int32_t y = 0; y < out.height; ++y) {
    for (int32_t x = 0; x < out.width; ++x) {
      for (int32_t c = 0; c < out.channels; ++c) output(y, x, c) = reduce(pooled_values(input, window, y, x, c));
    }
  }
  return output;
}

}  // namespace

Image average_pool(const Image& input, const Window& window, const Shape& out, const ClampBounds& bounds) {
  return pool(input, window, out, [&](const xt::xtensor<int32_t, 2>& values) {
    const int32_t sum = xt::sum(values)();
    return quantize(static_cast<float>(sum) / static_cast<float>(values.size()), {0, bounds.low, bounds.high});
  });
}

Image max_pool(const Image& input, const Window& window, const Shape& out, const ClampBounds& bounds) {
  return pool(input, window, out, [&](const xt::xtensor<int32_t, 2>& values) {
    return static_cast<int8_t>(std::clamp(xt::amax(values)(), bounds.low, bounds.high));
  });
}

namespace {

Vector<float> channel_means(const Image& input) {
  const Vector<int64_t> sums = xt::sum<int64_t>(input, {0, 1});
  const auto count = static_cast<float>(input.shape(0) * input.shape(1));
  return xt::cast<float>(sums) / count;
}

}  // namespace

Image mean(const Image& input, const OutputRange& range) {
  const Vector<float> means = channel_means(input);
  Image output = make_image({1, 1, shape_of(input).channels});
  // The stored integers average to a stored integer: there is no zero point to add.
  const OutputRange stored = {0, range.low, range.high};
  for (size_t c = 0; c < means.size(); ++c) output(0, 0, c) = quantize(means(c), stored);
  return output;
}

Image rescaled_mean(const Image& input, int32_t input_zero, float ratio, const OutputRange& range) {
  const Vector<float> means = channel_means(input);
  Image output = make_image({1, 1, shape_of(input).channels});
  for (size_t c = 0; c < means.size(); ++c) {
    output(0, 0, c) = quantize((means(c) - static_cast<float>(input_zero)) * ratio, range);
  }
  return output;
}

}  // namespace pmt::reference
