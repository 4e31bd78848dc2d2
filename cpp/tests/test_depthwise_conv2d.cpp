#include <doctest/doctest.h>

#include <algorithm>

#include "tests/linear_case.hpp"
#include "tests/simulated_kernels.hpp"

using namespace pmt;
using namespace pmt::tests;

namespace {

void check(const LinearCase& linear) { check_output(linear, {}); }

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
  check(random_linear_case(random, shape));
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

TEST_CASE("depthwise_conv2d of square windows, for every width and stride") {
  RandomSource random(41);
  for (const int32_t kernel : {3, 5, 7}) {
    for (const int32_t stride : {1, 2}) {
      for (int32_t width = 1; width <= 13; ++width) {
        CAPTURE(kernel);
        CAPTURE(stride);
        CAPTURE(width);
        const int32_t before = random.integer(0, kernel - 1), after = random.integer(0, kernel - 1);
        const Shape in = {random.integer(std::max(1, kernel - before - after), 12),
                          std::max(width, kernel - before - after), random.integer(4, 13)};
        const Window window = {kernel, kernel, stride, stride, before, before};
        check(random_linear_batch(random, {OpKind::depthwise_conv2d, in, in.channels, window, after, after}));
      }
    }
  }
}

TEST_CASE("depthwise_conv2d whose input is cut into bands of rows") {
  RandomSource random(42);
  const auto compare_large = [&](const Shape& in, const Window& window, int32_t after) {
    CAPTURE(in.width);
    check(random_linear_batch(random, {OpKind::depthwise_conv2d, in, in.channels, window, after, after}));
  };
  compare_large({40, 64, 8}, {3, 3, 1, 1, 1, 1}, 1);
  compare_large({41, 65, 5}, {3, 3, 2, 2, 1, 1}, 0);
  compare_large({37, 33, 6}, {7, 7, 2, 2, 3, 3}, 2);
  compare_large({32, 32, 4}, {5, 5, 1, 1, 2, 2}, 2);
  compare_large({30, 61, 7}, {7, 7, 1, 1, 3, 3}, 3);
  compare_large({20, 300, 4}, {5, 5, 3, 2, 1, 1}, 1);
  compare_large({50, 24, 9}, {3, 3, 4, 1, 0, 0}, 1);
  compare_large({25, 26, 4}, {2, 5, 1, 2, 0, 2}, 1);
  compare_large({40, 64, 16}, {3, 3, 1, 1, 1, 1}, 1);
  compare_large({37, 50, 40}, {3, 3, 2, 2, 1, 1}, 0);
  compare_large({33, 31, 24}, {7, 7, 2, 2, 3, 3}, 2);
  compare_large({20, 90, 17}, {5, 5, 3, 3, 1, 1}, 1);
}

// Blocks of 64, 32 and 16 channels, alone and overlapping; few rows, which one column of a kernel sees at
// once, and more, in bands of which the last ones may be short or empty.
TEST_CASE("depthwise_conv2d of every number of channels and rows") {
  RandomSource random(43);
  for (const int32_t channels : {15, 16, 24, 32, 33, 40, 48, 63, 64, 65, 79, 80, 97, 112, 120, 144}) {
    for (const int32_t height : {1, 2, 3, 4, 5, 8, 11}) {
      CAPTURE(channels);
      CAPTURE(height);
      const int32_t kernel = random.integer(1, 10), before = random.integer(0, kernel - 1);
      const int32_t after = std::max(random.integer(0, kernel - 1), kernel - before - height);
      const Shape in = {height, std::max(random.integer(1, 9), kernel - before - after), channels};
      const Window window = {kernel, kernel, random.integer(1, 4), random.integer(1, 3), before, before};
      check(random_linear_batch(random, {OpKind::depthwise_conv2d, in, channels, window, after, after}));
    }
  }
}

TEST_CASE("perturbed packed depthwise weights are the packed form of perturbed weights") {
  RandomSource random(44);
  for (int32_t i = 0; i < 60; ++i) {
    CAPTURE(i);
    const int32_t kernel = random.integer(1, 7), channels = random.integer(1, 150);
    const Shape in = {random.integer(kernel, 9), random.integer(kernel, 9), channels};
    const Window window = {kernel, kernel, random.integer(1, 2), random.integer(1, 2), 0, 0};
    const LinearShape shape = {OpKind::depthwise_conv2d, in, channels, window, 0, 0};
    check_perturbed(random, random_linear_case(random, shape));
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
  for (const Kernels* kernels : tested_kernels()) CHECK(kernel_output(*kernels, linear, 4) == expected);
  CHECK(expected_output(linear) == expected);
}
