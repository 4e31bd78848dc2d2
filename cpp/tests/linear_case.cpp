#include "tests/linear_case.hpp"

#include <algorithm>
#include <climits>
#include <cmath>

#include "reference/conv2d.hpp"
#include "reference/depthwise_conv2d.hpp"
#include "reference/fully_connected.hpp"

namespace pmt::tests {
namespace {

int64_t taps(const LinearShape& shape) { return weight_count(shape) / shape.out_channels; }

reference::Requantisation random_requantisation(RandomSource& random, const LinearShape& shape) {
  const auto channels = static_cast<size_t>(shape.out_channels);
  reference::Requantisation to;
  to.bias = reference::Vector<int32_t>::from_shape({channels});
  to.scales = reference::Vector<float>::from_shape({channels});
  const double spread = 50.0 / (74.0 * 74.0 * std::sqrt(static_cast<double>(taps(shape))));
  for (size_t c = 0; c < channels; ++c) {
    const bool dead = random.chance(8);
    to.scales(c) = static_cast<float>(dead ? 3.9e-9 * random.real(0.1, 10.0) : spread * random.real(0.2, 4.0));
    to.bias(c) = dead ? (random.chance(2) ? INT_MIN : INT_MAX) : random.integer(-20000, 20000);
    if (random.chance(16)) to.bias(c) = random.chance(2) ? INT_MIN : INT_MAX;
  }
  const int32_t low = random.integer(-128, 100);
  const bool clamped = random.chance(2);
  to.range = {random.integer(-128, 127), clamped ? low : -128, clamped ? random.integer(low + 1, 127) : 127};
  return to;
}

}  // namespace

Shape output_shape(const LinearShape& shape) {
  if (shape.kind == OpKind::fully_connected) return {1, 1, shape.out_channels};
  const Window& w = shape.window;
  return {(shape.in.height + w.pad_top + shape.pad_bottom - w.kernel_h) / w.stride_h + 1,
          (shape.in.width + w.pad_left + shape.pad_right - w.kernel_w) / w.stride_w + 1, shape.out_channels};
}

int64_t weight_count(const LinearShape& shape) {
  const int64_t window = static_cast<int64_t>(shape.window.kernel_h) * shape.window.kernel_w * shape.out_channels;
  switch (shape.kind) {
    case OpKind::fully_connected:
      return static_cast<int64_t>(shape.in.height) * shape.in.width * shape.in.channels * shape.out_channels;
    case OpKind::depthwise_conv2d: return window;
    default: return window * shape.in.channels;
  }
}

LinearCase random_linear_case(RandomSource& random, const LinearShape& shape) {
  const int64_t inputs = static_cast<int64_t>(shape.in.height) * shape.in.width * shape.in.channels;
  return {shape,
          output_shape(shape),
          random.integer(-128, 127),
          random.bytes(inputs),
          random.bytes(weight_count(shape)),
          random_requantisation(random, shape)};
}

reference::Image image_of(const int8_t* values, const Shape& shape) {
  reference::Image image = reference::make_image(shape);
  std::copy_n(values, image.size(), image.begin());
  return image;
}

reference::Image image_of(const std::vector<int8_t>& values, const Shape& shape) {
  return image_of(values.data(), shape);
}

std::vector<int8_t> values_of(const reference::Image& image) { return {image.begin(), image.end()}; }

std::vector<int8_t> expected_output(const LinearCase& linear) {
  const LinearShape& shape = linear.shape;
  const reference::Image input = image_of(linear.input, shape.in);
  const auto out = static_cast<size_t>(shape.out_channels), in = static_cast<size_t>(shape.in.channels);
  const auto kernel_h = static_cast<size_t>(shape.window.kernel_h),
             kernel_w = static_cast<size_t>(shape.window.kernel_w);
  if (shape.kind == OpKind::conv2d) {
    const auto weights = tensor_of<reference::ConvWeights>(linear.weights, {out, kernel_h, kernel_w, in});
    return values_of(reference::conv2d(input, linear.input_zero, weights, shape.window, linear.to, linear.out));
  }
  if (shape.kind == OpKind::depthwise_conv2d) {
    const auto weights = tensor_of<reference::DepthwiseWeights>(linear.weights, {kernel_h, kernel_w, out});
    return values_of(
        reference::depthwise_conv2d(input, linear.input_zero, weights, shape.window, linear.to, linear.out));
  }
  const auto weights = tensor_of<reference::DenseWeights>(linear.weights, {out, input.size()});
  return values_of(reference::fully_connected(input, linear.input_zero, weights, linear.to));
}

std::vector<int8_t> kernel_output(const Kernels& kernels, const LinearCase& linear, int32_t tile) {
  const LinearShape& shape = linear.shape;
  const int64_t channel_weights = weight_count(shape) / shape.out_channels;
  std::vector<int8_t> output(static_cast<size_t>(linear.out.height) * static_cast<size_t>(linear.out.width) *
                             static_cast<size_t>(linear.out.channels));
  const int32_t scratch_bytes = kernels.scratch_bytes({shape.kind, shape.in, linear.out, shape.window});
  for (int32_t begin = 0; begin < shape.out_channels; begin += tile) {
    AlignedBytes scratch(static_cast<size_t>(scratch_bytes), 0x5A);  // what an earlier op may have left
    const LinearArgs args = {linear.input.data(),
                             output.data(),
                             {1, 0, 0},
                             shape.in,
                             linear.out,
                             shape.window,
                             linear.input_zero,
                             linear.to.range.zero_point,
                             linear.to.range.low,
                             linear.to.range.high,
                             begin,
                             std::min(begin + tile, shape.out_channels),
                             linear.weights.data() + begin * channel_weights,
                             linear.to.bias.data() + begin,
                             linear.to.scales.data(),
                             nullptr,
                             scratch.data()};
    switch (shape.kind) {
      case OpKind::conv2d: kernels.conv2d(args); break;
      case OpKind::depthwise_conv2d: kernels.depthwise_conv2d(args); break;
      default: kernels.fully_connected(args); break;
    }
  }
  return output;
}

}  // namespace pmt::tests
