#include "tests/linear_case.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <climits>
#include <cmath>
#include <cstring>

#include "core/net/network.hpp"
#include "reference/ops.hpp"
#include "tests/simulated_kernels.hpp"

namespace pmt::tests {
namespace {

int64_t taps(const LinearShape& shape) { return weight_count(shape) / shape.out_channels; }

reference::Requantization random_requantization(RandomSource& random, const LinearShape& shape) {
  const auto channels = static_cast<size_t>(shape.out_channels);
  reference::Requantization to;
  to.bias = reference::Vector<int32_t>::from_shape({channels});
  to.scales = reference::Vector<float>::from_shape({channels});
  const double spread = 50.0 / (74.0 * 74.0 * std::sqrt(static_cast<double>(taps(shape))));
  const bool has_dead = random.chance(2);
  for (size_t c = 0; c < channels; ++c) {
    const bool dead = has_dead && random.chance(8);
    to.scales(c) = static_cast<float>(dead ? 3.9e-9 * random.real(0.1, 10.0) : spread * random.real(0.2, 4.0));
    to.bias(c) = dead ? (random.chance(2) ? INT_MIN : INT_MAX) : random.integer(-20000, 20000);
    if (has_dead && random.chance(16)) to.bias(c) = random.chance(2) ? INT_MIN : INT_MAX;
  }
  const int32_t low = random.integer(-128, 100);
  const bool clamped = random.chance(2);
  to.range = {random.integer(-128, 127), clamped ? low : -128, clamped ? random.integer(low + 1, 127) : 127};
  return to;
}

}  // namespace

reference::Sums exact_sums(const LinearCase& linear, const int8_t* image) {
  const LinearShape& shape = linear.shape;
  const reference::Image input = image_of(image, shape.in);
  const auto out = static_cast<size_t>(shape.out_channels), in = static_cast<size_t>(shape.in.channels);
  const auto kernel_h = static_cast<size_t>(shape.window.kernel_h),
             kernel_w = static_cast<size_t>(shape.window.kernel_w);
  if (shape.kind == OpKind::conv2d) {
    const auto weights = tensor_of<reference::ConvWeights>(linear.weights, {out, kernel_h, kernel_w, in});
    return reference::conv2d_sums(input, linear.input_zero, weights, shape.window, linear.out);
  }
  if (shape.kind == OpKind::depthwise_conv2d) {
    const auto weights = tensor_of<reference::DepthwiseWeights>(linear.weights, {kernel_h, kernel_w, out});
    return reference::depthwise_conv2d_sums(input, linear.input_zero, weights, shape.window, linear.out);
  }
  const auto weights = tensor_of<reference::DenseWeights>(linear.weights, {out, input.size()});
  const auto sums = reference::fully_connected_sums(input, linear.input_zero, weights);
  return tensor_of<reference::Sums>(std::vector<int64_t>(sums.begin(), sums.end()), {1, 1, out});
}

namespace {

size_t elements(const Shape& shape) {
  return static_cast<size_t>(shape.height) * static_cast<size_t>(shape.width) * static_cast<size_t>(shape.channels);
}

// Biases or scales of all channels, readable up to the kernels' multiple and no further.
template <typename Value, typename Values>
AlignedBytes padded(const Kernels& kernels, const Values& values) {
  const auto multiple = static_cast<size_t>(kernels.channel_multiple);
  const size_t count = (values.size() + multiple - 1) / multiple * multiple;
  AlignedBytes bytes(count * sizeof(Value));
  std::memcpy(bytes.data(), values.data(), values.size() * sizeof(Value));
  return bytes;
}

// The arguments of a kernel's call and the memory behind them.
class Call {
 public:
  Call(const Kernels& kernels, const LinearCase& linear)
      : bias_(padded<int32_t>(kernels, linear.to.bias)),
        scales_(padded<float>(kernels, linear.to.scales)),
        packed_(packed_weights(kernels, linear, nullptr, 0)),
        scratch_(static_cast<size_t>(kernels.scratch_bytes(op_shape(linear))), 0x5A) {  // as an earlier op may leave it
    args = {linear.input.data(),
            nullptr,
            linear.batch,
            linear.shape.in,
            linear.out,
            linear.shape.window,
            linear.input_zero,
            linear.to.range.zero_point,
            linear.to.range.low,
            linear.to.range.high,
            0,
            linear.shape.out_channels,
            packs(kernels) ? nullptr : linear.weights.data(),
            reinterpret_cast<const int32_t*>(bias_.data()),
            reinterpret_cast<const float*>(scales_.data()),
            packs(kernels) ? packed_.data() : nullptr,
            scratch_.data()};
  }
  LinearArgs args;

 private:
  AlignedBytes bias_, scales_, packed_, scratch_;
};

void run(const Kernels& kernels, OpKind kind, const LinearArgs& args) {
  switch (kind) {
    case OpKind::conv2d: kernels.conv2d(args); break;
    case OpKind::depthwise_conv2d: kernels.depthwise_conv2d(args); break;
    default: kernels.fully_connected(args); break;
  }
}

// The images without what lies between them, which must still hold `filler`.
std::vector<int8_t> without_gaps(const std::vector<int8_t>& values, const Batch& batch, size_t image, int8_t filler) {
  std::vector<int8_t> dense;
  const size_t stride = batch.images > 1 ? static_cast<size_t>(batch.output_stride) : image;
  for (size_t i = 0; i < values.size(); ++i) {
    if (i % stride < image) {
      dense.push_back(values[i]);
    } else {
      CHECK(values[i] == filler);
    }
  }
  return dense;
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
          random_requantization(random, shape)};
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

bool has_dead_channel(const LinearCase& linear) {
  const auto& bias = linear.to.bias;
  return std::any_of(bias.begin(), bias.end(), [](int32_t b) { return b == INT_MIN || b == INT_MAX; });
}

LinearCase with_images(RandomSource& random, LinearCase linear, const Batch& batch) {
  const int64_t image = static_cast<int64_t>(linear.input.size());
  linear.batch = batch;
  linear.input = random.bytes(static_cast<int64_t>(batch.images - 1) * batch.input_stride + image);
  return linear;
}

LinearCase with_images(RandomSource& random, const LinearCase& linear, int32_t images, int32_t apart) {
  const auto input = static_cast<int32_t>(linear.input.size()), output = static_cast<int32_t>(elements(linear.out));
  return with_images(random, linear, {images, input + apart, output + apart});
}

LinearCase random_linear_batch(RandomSource& random, const LinearShape& shape) {
  const LinearCase linear = random_linear_case(random, shape);
  const auto input = static_cast<int32_t>(linear.input.size()), output = static_cast<int32_t>(elements(linear.out));
  Batch batch;
  batch.images = random.integer(1, 5);
  batch.input_stride = random.chance(4) ? 0 : input + (random.chance(2) ? random.integer(0, 40) : 0);
  batch.output_stride = output + (random.chance(2) ? random.integer(0, 40) : 0);
  return with_images(random, linear, batch);
}

OpShape op_shape(const LinearCase& linear) {
  const LinearShape& shape = linear.shape;
  return {shape.kind, shape.in, linear.out, shape.window};
}

std::vector<int8_t> expected_output(const LinearCase& linear) {
  std::vector<int8_t> all;
  for (int32_t i = 0; i < linear.batch.images; ++i) {
    const std::vector<int8_t> image = values_of(
        reference::requantize(exact_sums(linear, linear.input.data() + i * linear.batch.input_stride), linear.to));
    all.insert(all.end(), image.begin(), image.end());
  }
  return all;
}

std::vector<int8_t> kernel_output(const Kernels& kernels, const LinearCase& linear, int32_t tile) {
  const LinearShape& shape = linear.shape;
  const int64_t channel_weights = weight_count(shape) / shape.out_channels;
  const size_t image = elements(linear.out);
  constexpr int8_t filler = 0x5B;
  std::vector<int8_t> output(
      static_cast<size_t>(linear.batch.images - 1) * static_cast<size_t>(linear.batch.output_stride) + image, filler);
  Call call(kernels, linear);
  call.args.output = output.data();
  if (packs(kernels)) {
    run(kernels, shape.kind, call.args);
    return without_gaps(output, linear.batch, image, filler);
  }
  for (int32_t begin = 0; begin < shape.out_channels; begin += tile) {
    LinearArgs args = call.args;
    args.channel_begin = begin;
    args.channel_end = std::min(begin + tile, shape.out_channels);
    args.weights += begin * channel_weights;
    args.bias += begin;
    run(kernels, shape.kind, args);
  }
  return without_gaps(output, linear.batch, image, filler);
}

void check_output(const LinearCase& linear, const std::vector<int32_t>& tiles) {
  const LinearShape& shape = linear.shape;
  CAPTURE(shape.in.height);
  CAPTURE(shape.in.width);
  CAPTURE(shape.in.channels);
  CAPTURE(shape.out_channels);
  CAPTURE(shape.window.stride_w);
  const std::vector<int8_t> expected = expected_output(linear);
  for (const int32_t tile : tiles) {
    CAPTURE(tile);
    for (const Kernels* kernels : kernels_of_ranges) {
      CAPTURE(kernels->name);
      CHECK(kernel_output(*kernels, linear, tile) == expected);
    }
  }
  for (const Kernels* kernels : tested_kernels()) {
    CAPTURE(kernels->name);
    CHECK(kernel_output(*kernels, linear, shape.out_channels) == expected);
  }
}

std::vector<float> kernel_logits(const Kernels& kernels, const LinearCase& linear) {
  std::vector<float> logits(static_cast<size_t>(linear.batch.images) * static_cast<size_t>(linear.shape.out_channels));
  const Call call(kernels, linear);
  kernels.logits(call.args, logits.data());
  return logits;
}

std::vector<float> expected_logits(const LinearCase& linear) {
  std::vector<float> logits;
  const auto taps_of_channel = static_cast<size_t>(taps(linear.shape));
  for (int32_t i = 0; i < linear.batch.images; ++i) {
    const int8_t* input = linear.input.data() + i * linear.batch.input_stride;
    for (size_t c = 0; c < linear.to.bias.size(); ++c) {
      int32_t sum = 0;
      for (size_t k = 0; k < taps_of_channel; ++k) {
        sum += (input[k] - linear.input_zero) * linear.weights[c * taps_of_channel + k];
      }
      logits.push_back((static_cast<float>(sum) + static_cast<float>(linear.to.bias(c))) * linear.to.scales(c));
    }
  }
  return logits;
}

AlignedBytes packed_weights(const Kernels& kernels, const LinearCase& linear, const int8_t* signs, int32_t mu) {
  const OpShape shape = op_shape(linear);
  if (!packs(kernels)) return AlignedBytes(0);
  AlignedBytes packed(static_cast<size_t>(kernels.packed_bytes(shape)), 0x3C);
  kernels.pack({shape, linear.input_zero, linear.weights.data(), signs, mu, packed.data()});
  return packed;
}

void check_perturbed(RandomSource& random, const LinearCase& linear) {
  const std::vector<int8_t> signs = random.bytes(weight_count(linear.shape), -1, 1);
  const int32_t mu = random.pick<int32_t>({1, 2, 7, 64});
  LinearCase perturbed = linear;
  portable_kernels().perturb(linear.weights.data(), signs.data(), static_cast<int32_t>(signs.size()), mu, -127, 127,
                             perturbed.weights.data());
  for (const Kernels* kernels : tested_kernels()) {
    CAPTURE(kernels->name);
    const AlignedBytes once = packed_weights(*kernels, linear, signs.data(), mu);
    const AlignedBytes twice = packed_weights(*kernels, perturbed, nullptr, 0);
    REQUIRE(once.size() == twice.size());
    CHECK((once.size() == 0 || std::memcmp(once.data(), twice.data(), once.size()) == 0));
  }
}

}  // namespace pmt::tests
