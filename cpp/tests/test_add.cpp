#include <doctest/doctest.h>

#include <algorithm>

#include "core/ops/op.hpp"
#include "reference/ops.hpp"
#include "tests/linear_case.hpp"
#include "tests/random_source.hpp"
#include "tests/simulated_kernels.hpp"

using namespace pmt;
using namespace pmt::tests;

namespace {

std::vector<int8_t> kernel_add(const Kernels& kernels, const reference::Quantized& a, const reference::Quantized& b,
                               float output_scale, const reference::OutputRange& range) {
  std::vector<int8_t> output(a.values.size());
  kernels.add({{a.values.data(), b.values.data()},
               output.data(),
               1,
               static_cast<int32_t>(output.size()),
               {0, 0},
               0,
               {a.zero_point, b.zero_point},
               range.zero_point,
               {a.scale, b.scale},
               output_scale,
               range.low,
               range.high});
  return output;
}

// Every table on these operands.
void compare(const reference::Quantized& a, const reference::Quantized& b, float output_scale,
             const reference::OutputRange& range) {
  const std::vector<int8_t> expected = values_of(reference::add(a, b, output_scale, range));
  for (const Kernels* kernels : tests::tested_kernels()) {
    CAPTURE(kernels->name);
    CHECK(kernel_add(*kernels, a, b, output_scale, range) == expected);
  }
}

reference::OutputRange random_range(RandomSource& random) {
  const int32_t low = random.integer(-128, 0);
  return {random.integer(-128, 127), low, random.integer(1, 127)};
}

}  // namespace

TEST_CASE("add gives the bytes of its definition") {
  RandomSource random(7);
  for (int i = 0; i < 200; ++i) {
    const Shape shape = {random.integer(1, 5), random.integer(1, 5), random.pick<int32_t>({1, 3, 8, 16, 17, 48})};
    const int64_t count = static_cast<int64_t>(shape.height) * shape.width * shape.channels;
    const auto operand = [&] {
      return reference::Quantized{image_of(random.bytes(count), shape), random.integer(-128, 127),
                                  static_cast<float>(random.real(0.001, 0.2))};
    };
    const reference::Quantized a = operand(), b = operand();
    compare(a, b, static_cast<float>(random.real(0.001, 0.3)), random_range(random));
  }
}

TEST_CASE("add of every count of elements, with scales that make halves and with extreme ones") {
  RandomSource random(21);
  const std::vector<float> scales = {0.5f, 0.25f, 1.0f, 3.0f, 1e-20f, 1e30f};
  for (int32_t count = 1; count <= 100; ++count) {
    CAPTURE(count);
    const auto operand = [&] {
      return reference::Quantized{image_of(random.bytes(count), {1, count, 1}), random.integer(-128, 127),
                                  random.pick(scales)};
    };
    const reference::Quantized a = operand(), b = operand();
    compare(a, b, random.pick(scales), random_range(random));
  }
}

TEST_CASE("add of images that lie apart, with an operand that all share") {
  const int32_t images = 3, count = 45, stride = 64;
  RandomSource random(22);
  const std::vector<int8_t> own = random.bytes(2 * stride + count), shared = random.bytes(count);
  for (const Kernels* kernels : tests::tested_kernels()) {
    CAPTURE(kernels->name);
    std::vector<int8_t> output(static_cast<size_t>(2 * stride + count), 99);
    kernels->add({{own.data(), shared.data()},
                  output.data(),
                  images,
                  count,
                  {stride, 0},
                  stride,
                  {3, -7},
                  5,
                  {0.11f, 0.07f},
                  0.13f,
                  -128,
                  127});
    for (int32_t i = 0; i < images; ++i) {
      const reference::Quantized a = {image_of(own.data() + i * stride, {1, count, 1}), 3, 0.11f};
      const reference::Quantized b = {image_of(shared, {1, count, 1}), -7, 0.07f};
      const auto begin = output.begin() + i * stride;
      CHECK(std::vector<int8_t>(begin, begin + count) == values_of(reference::add(a, b, 0.13f, {5, -128, 127})));
      if (i + 1 < images) CHECK(std::all_of(begin + count, begin + stride, [](int8_t value) { return value == 99; }));
    }
  }
}

TEST_CASE("add of literal numbers: halves go to even, large sums saturate") {
  const auto row = [](const std::vector<int8_t>& values) {
    return image_of(values, {1, static_cast<int32_t>(values.size()), 1});
  };
  const reference::Quantized a = {row({1, 2, -1, 127, -128}), 0, 0.5f};
  const reference::Quantized b = {row({10, 11, 10, 110, -10}), 10, 0.25f};
  // 0.5, 1.25, -0.5, 88.5, -69 in output steps of 1, plus 3.
  const std::vector<int8_t> expected = {3, 4, 3, 90, -66};
  CHECK(values_of(reference::add(a, b, 1.0f, {3, -128, 90})) == expected);
  const std::vector<int8_t> saturated = {127, 127, -128, 127, -128};
  CHECK(values_of(reference::add(a, b, 1e-12f, {0, -128, 127})) == saturated);
  for (const Kernels* kernels : tests::tested_kernels()) {
    CAPTURE(kernels->name);
    CHECK(kernel_add(*kernels, a, b, 1.0f, {3, -128, 90}) == expected);
    CHECK(kernel_add(*kernels, a, b, 1e-12f, {0, -128, 127}) == saturated);
  }
}

namespace {

struct Operands {
  Shape shape[2];
  float scale[2], output_scale;
  int32_t zero_point[2];
  reference::OutputRange range;
  std::vector<int8_t> values[2];  // of all images
};

TensorRecord record_of(const Shape& shape, float scale, int32_t zero_point) {
  return {shape.height, shape.width, shape.channels, scale, zero_point, 0};
}

std::vector<int8_t> concatenate(const Operands& o, int32_t images, int32_t input_gap, int32_t output_gap) {
  const TensorRecord first = record_of(o.shape[0], o.scale[0], o.zero_point[0]);
  const TensorRecord second = record_of(o.shape[1], o.scale[1], o.zero_point[1]);
  TensorRecord out = first;
  out.channels += second.channels;
  out.scale = o.output_scale;
  out.zero_point = o.range.zero_point;
  OpRecord op = {};
  op.kind = OpKind::concatenation;
  op.clamp_min = o.range.low;
  op.clamp_max = o.range.high;
  const Shape shape = {out.height, out.width, out.channels};
  const int32_t stride = element_count(out) + output_gap;
  std::vector<int8_t> output(static_cast<size_t>(images * stride), 99);
  const OpImages all = {images,
                        {o.values[0].data(), o.values[1].data()},
                        {element_count(first) + input_gap, element_count(second) + input_gap},
                        output.data(),
                        stride,
                        {OpKind::concatenation, o.shape[0], shape, {1, 1, 1, 1, 0, 0}}};
  definition_of(OpKind::concatenation)->run(portable_kernels(), {op, {&first, &second}, out}, all);
  return output;
}

reference::Quantized operand(const Operands& o, int which, int32_t image, int32_t gap) {
  const Shape& shape = o.shape[which];
  const int32_t stride = shape.height * shape.width * shape.channels + gap;
  return {image_of(o.values[which].data() + image * stride, shape), o.zero_point[which], o.scale[which]};
}

Operands random_operands(RandomSource& random, int32_t images, int32_t gap) {
  Operands o = {};
  const int32_t height = random.integer(1, 5), width = random.integer(1, 5);
  o.output_scale = static_cast<float>(random.real(0.001, 0.3));
  o.range = {random.integer(-128, 127), -128, 127};
  if (random.chance(2)) o.range = {o.range.zero_point, random.integer(-128, 0), random.integer(1, 127)};
  for (int k = 0; k < 2; ++k) {
    o.shape[k] = {height, width, random.pick<int32_t>({1, 3, 8, 16, 17, 48})};
    const bool same = random.chance(2);
    o.scale[k] = same ? o.output_scale : static_cast<float>(random.real(0.001, 0.3));
    o.zero_point[k] = same ? o.range.zero_point : random.integer(-128, 127);
    o.values[k] = random.bytes(images * (height * width * o.shape[k].channels + gap));
  }
  return o;
}

}  // namespace

TEST_CASE("concatenation gives the bytes of its definition, image by image, and writes nothing between them") {
  RandomSource random(31);
  for (int i = 0; i < 200; ++i) {
    const int32_t images = random.integer(1, 3), input_gap = random.integer(0, 3), output_gap = random.integer(0, 3);
    const Operands o = random_operands(random, images, input_gap);
    const std::vector<int8_t> output = concatenate(o, images, input_gap, output_gap);
    auto next = output.begin();
    for (int32_t image = 0; image < images; ++image) {
      const std::vector<int8_t> expected = values_of(reference::concatenation(
          operand(o, 0, image, input_gap), operand(o, 1, image, input_gap), o.output_scale, o.range));
      const auto end = next + static_cast<std::ptrdiff_t>(expected.size());
      CHECK(std::vector<int8_t>(next, end) == expected);
      CHECK(std::vector<int8_t>(end, end + output_gap) == std::vector<int8_t>(static_cast<size_t>(output_gap), 99));
      next = end + output_gap;
    }
  }
}

TEST_CASE("concatenation of literal numbers: one tensor is copied, the other requantized, halves to even") {
  Operands o = {};
  o.shape[0] = {1, 2, 2};
  o.shape[1] = {1, 2, 1};
  o.scale[0] = 0.5f;
  o.output_scale = 0.5f;
  o.scale[1] = 0.25f;
  o.zero_point[0] = 3;
  o.zero_point[1] = -1;
  o.range = {3, -128, 127};
  o.values[0] = {-128, 127, 0, 3};
  o.values[1] = {0, 2};  // 0.5 and 1.5 steps of the output, plus 3
  CHECK(concatenate(o, 1, 0, 0) == std::vector<int8_t>{-128, 127, 3, 0, 3, 5});
  o.range = {3, 3, 4};
  CHECK(concatenate(o, 1, 0, 0) == std::vector<int8_t>{3, 4, 3, 3, 3, 4});
}
