#include <doctest/doctest.h>

#include "tests/linear_case.hpp"
#include "tests/simulated_kernels.hpp"

using namespace pmt;
using namespace pmt::tests;

namespace {

void check_logits(const LinearCase& linear) {
  const std::vector<float> logits = expected_logits(linear);
  for (const Kernels* kernels : tested_kernels()) {
    CAPTURE(kernels->name);
    CHECK(kernel_logits(*kernels, linear) == logits);
  }
}

}  // namespace

TEST_CASE("fully_connected gives the bytes of its definition") {
  RandomSource random(5);
  for (const Shape& in : {Shape{1, 1, 1}, Shape{1, 1, 3}, Shape{1, 1, 64}, Shape{4, 3, 17}, Shape{2, 7, 48}}) {
    for (const int32_t out_channels : {1, 3, 10, 16, 17, 100}) {
      const LinearCase linear =
          random_linear_case(random, {OpKind::fully_connected, in, out_channels, {1, 1, 1, 1, 0, 0}, 0, 0});
      check_output(linear, {out_channels, 1, 7});
    }
  }
}

TEST_CASE("fully_connected of batches, and its logits") {
  RandomSource random(35);
  for (int32_t i = 0; i < 200; ++i) {
    CAPTURE(i);
    const Shape in = {random.integer(1, 3), random.integer(1, 3), random.integer(1, 70)};
    const LinearCase linear =
        random_linear_batch(random, {OpKind::fully_connected, in, random.integer(1, 70), {1, 1, 1, 1, 0, 0}, 0, 0});
    check_output(linear, {});
    check_logits(linear);
  }
}

TEST_CASE("logits of a convolution whose window covers its input") {
  RandomSource random(36);
  for (const int32_t out_channels : {1, 10, 33, 1000}) {
    for (const Shape& in : {Shape{1, 1, 160}, Shape{4, 3, 5}, Shape{1, 7, 3}}) {
      const LinearCase linear =
          random_linear_batch(random, {OpKind::conv2d, in, out_channels, {in.height, in.width, 1, 1, 0, 0}, 0, 0});
      check_logits(linear);
    }
  }
}

TEST_CASE("the largest accumulator that a model may have does not overflow") {
  LinearCase linear;
  linear.shape = {OpKind::fully_connected, {1, 1, 65535}, 2, {1, 1, 1, 1, 0, 0}, 0, 0};
  linear.out = {1, 1, 2};
  linear.input_zero = 127;
  linear.input.assign(65535, -128);
  linear.weights.assign(65535, -128);
  linear.weights.resize(2 * 65535, 127);
  linear.to.bias = {2147483647, -2147483647 - 1};
  linear.to.scales = {2e-8f, 2e-8f};
  linear.to.range = {0, -128, 127};
  // (65535 * 255 * 128 + 2^31) * 2e-8 = 85.7; (-65535 * 255 * 127 - 2^31) * 2e-8 = -85.4.
  const std::vector<int8_t> expected = {86, -85};
  for (const Kernels* kernels : tested_kernels()) CHECK(kernel_output(*kernels, linear, 2) == expected);
  CHECK(expected_output(linear) == expected);
}
