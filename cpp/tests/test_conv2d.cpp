#include <doctest/doctest.h>

#include "tests/linear_case.hpp"

using namespace pmt;
using namespace pmt::tests;

namespace {

LinearShape random_conv(RandomSource& random, int32_t kernel_h, int32_t kernel_w, int32_t in_channels) {
  const int32_t pad_top = random.integer(0, kernel_h - 1), pad_left = random.integer(0, kernel_w - 1);
  const int32_t pad_bottom = random.integer(0, kernel_h - 1), pad_right = random.integer(0, kernel_w - 1);
  const int32_t height = random.integer(std::max(1, kernel_h - pad_top - pad_bottom), 9);
  const int32_t width = random.integer(std::max(1, kernel_w - pad_left - pad_right), 9);
  const Window window = {kernel_h, kernel_w, random.integer(1, 3), random.integer(1, 3), pad_top, pad_left};
  const auto out_channels = random.pick<int32_t>({1, 3, 8, 16, 17, 33});
  return {OpKind::conv2d, {height, width, in_channels}, out_channels, window, pad_bottom, pad_right};
}

void compare(RandomSource& random, const LinearShape& shape) {
  CAPTURE(shape.in.height);
  CAPTURE(shape.in.width);
  CAPTURE(shape.in.channels);
  CAPTURE(shape.out_channels);
  const LinearCase linear = random_linear_case(random, shape);
  const std::vector<int8_t> expected = expected_output(linear);
  for (const int32_t tile : {shape.out_channels, 1, 5, 32}) {
    CAPTURE(tile);
    CHECK(kernel_output(portable_kernels(), linear, tile) == expected);
  }
}

}  // namespace

TEST_CASE("conv2d gives the bytes of its definition") {
  RandomSource random(1);
  for (const int32_t kernel_h : {1, 2, 3, 5, 7}) {
    for (const int32_t kernel_w : {1, 3, 4, 7}) {
      for (const int32_t in_channels : {1, 3, 8, 17}) {
        CAPTURE(kernel_h);
        CAPTURE(kernel_w);
        compare(random, random_conv(random, kernel_h, kernel_w, in_channels));
      }
    }
  }
}

TEST_CASE("pointwise conv2d gives the bytes of its definition for wide layers") {
  RandomSource random(2);
  for (const int32_t in_channels : {16, 40, 48, 96, 160}) {
    for (const int32_t size : {1, 3, 5}) {
      compare(random, {OpKind::conv2d, {size, size, in_channels}, 48, {1, 1, 1, 1, 0, 0}, 0, 0});
    }
  }
}

TEST_CASE("conv2d with stride 2 and TFLite's SAME padding, which is asymmetric") {
  RandomSource random(3);
  compare(random, {OpKind::conv2d, {8, 8, 3}, 16, {3, 3, 2, 2, 0, 0}, 1, 1});
  compare(random, {OpKind::conv2d, {7, 9, 8}, 17, {5, 3, 2, 2, 2, 1}, 2, 1});
}

TEST_CASE("conv2d of literal numbers") {
  // A 2 x 2 image, its top left corner padded: only the last kernel weight meets a pixel at (0, 0).
  LinearCase linear;
  linear.shape = {OpKind::conv2d, {2, 2, 1}, 1, {2, 2, 1, 1, 1, 1}, 0, 0};
  linear.out = {2, 2, 1};
  linear.input_zero = 1;
  linear.input = {11, 21, 31, 41};
  linear.weights = {1, 2, 3, 4};
  linear.to.bias = {6};
  linear.to.scales = {0.25f};
  linear.to.range = {-5, -128, 60};
  // Sums 40, 110, 140, 300; plus 6, times 0.25: 11.5, 29, 36.5, 76.5.
  const std::vector<int8_t> expected = {7, 24, 31, 60};
  CHECK(kernel_output(portable_kernels(), linear, 1) == expected);
  CHECK(expected_output(linear) == expected);
}
