#include <doctest/doctest.h>

#include "tests/linear_case.hpp"

using namespace pmt;
using namespace pmt::tests;

namespace {

void compare(RandomSource& random, int32_t kernel_h, int32_t kernel_w, int32_t channels, int32_t multiplier) {
  CAPTURE(kernel_h);
  CAPTURE(kernel_w);
  CAPTURE(channels);
  CAPTURE(multiplier);
  const int32_t pad_top = random.integer(0, kernel_h - 1), pad_left = random.integer(0, kernel_w - 1);
  const Window window = {kernel_h, kernel_w, random.integer(1, 2), random.integer(1, 3), pad_top, pad_left};
  const Shape in = {random.integer(kernel_h, 9), random.integer(kernel_w, 9), channels};
  const LinearShape shape = {OpKind::depthwise_conv2d,        in,
                             channels * multiplier,           window,
                             random.integer(0, kernel_h - 1), random.integer(0, kernel_w - 1)};
  const LinearCase linear = random_linear_case(random, shape);
  CHECK(kernel_output(portable_kernels(), linear, shape.out_channels) == expected_output(linear));
}

}  // namespace

TEST_CASE("depthwise_conv2d gives the bytes of its definition") {
  RandomSource random(4);
  for (const int32_t kernel_h : {1, 3, 5, 7}) {
    for (const int32_t kernel_w : {1, 2, 3, 7}) {
      for (const int32_t channels : {1, 3, 8, 17, 48}) {
        compare(random, kernel_h, kernel_w, channels, 1);
      }
      compare(random, kernel_h, kernel_w, 3, 2);
      compare(random, kernel_h, kernel_w, 8, 4);
      compare(random, kernel_h, kernel_w, 1, 16);
    }
  }
}

TEST_CASE("depthwise_conv2d of literal numbers") {
  // Two inputs, two outputs each: outputs 0 and 1 see input 0, outputs 2 and 3 see input 1.
  LinearCase linear;
  linear.shape = {OpKind::depthwise_conv2d, {1, 2, 2}, 4, {1, 2, 1, 1, 0, 0}, 0, 0};
  linear.out = {1, 1, 4};
  linear.input_zero = 0;
  linear.input = {1, 2, 3, 4};
  linear.weights = {1, 1, 1, 1, 10, -10, 5, 0};
  linear.to.bias = {0, 0, 0, 100};
  linear.to.scales = {1.0f, 1.0f, 1.0f, 1.0f};
  linear.to.range = {0, -128, 127};
  const std::vector<int8_t> expected = {31, -29, 22, 102};
  CHECK(kernel_output(portable_kernels(), linear, 4) == expected);
  CHECK(expected_output(linear) == expected);
}
