#include <doctest/doctest.h>

#include "core/ops/op.hpp"
#include "reference/ops.hpp"
#include "tests/linear_case.hpp"
#include "tests/random_source.hpp"
#include "tests/simulated_kernels.hpp"

using namespace pmt;
using namespace pmt::tests;

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
