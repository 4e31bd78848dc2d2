#include <doctest/doctest.h>

#include "tests/linear_case.hpp"
#include "tests/simulated_kernels.hpp"

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

void compare_case(const LinearCase& linear) { check_output(linear, {linear.shape.out_channels, 1, 5, 32}); }

void compare(RandomSource& random, const LinearShape& shape) { compare_case(random_linear_case(random, shape)); }

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

TEST_CASE("conv2d of batches whose images lie apart or share their input") {
  RandomSource random(31);
  for (int32_t i = 0; i < 200; ++i) {
    CAPTURE(i);
    LinearShape shape = random_conv(random, random.integer(1, 4), random.integer(1, 4), random.integer(1, 100));
    shape.out_channels = random.integer(1, 100);
    compare_case(random_linear_batch(random, shape));
  }
}

TEST_CASE("pointwise conv2d of batches") {
  RandomSource random(32);
  for (int32_t i = 0; i < 200; ++i) {
    CAPTURE(i);
    const Shape in = {random.integer(1, 17), random.integer(1, 17), random.integer(1, 100)};
    compare_case(random_linear_batch(random, {OpKind::conv2d, in, random.integer(1, 100), {1, 1, 1, 1, 0, 0}, 0, 0}));
  }
}

TEST_CASE("pointwise conv2d whose positions share a vector") {
  RandomSource random(35);
  for (const int32_t out_channels : {1, 2, 4, 5, 8, 9}) {
    for (const int32_t in_channels : {16, 32, 24}) {
      const Shape in = {random.integer(1, 9), random.pick<int32_t>({1, 2, 30}), in_channels};
      CAPTURE(in.width);
      const LinearShape shape = {OpKind::conv2d, in, out_channels, {1, 1, 1, 1, 0, 0}, 0, 0};
      compare_case(random_linear_batch(random, shape));
      check_perturbed(random, random_linear_case(random, shape));
    }
  }
}

TEST_CASE("pointwise conv2d whose output is stored in all ways") {
  RandomSource random(36);
  for (const int32_t out_channels : {4, 8, 12, 16, 24, 32, 48, 64, 96}) {
    for (int32_t positions = 1; positions <= 20; ++positions) {
      CAPTURE(out_channels);
      CAPTURE(positions);
      const Shape in = {positions, 1, random.pick<int32_t>({3, 16, 20})};
      const LinearShape shape = {OpKind::conv2d, in, out_channels, {1, 1, 1, 1, 0, 0}, 0, 0};
      LinearCase linear = random_linear_case(random, shape);
      while (has_dead_channel(linear)) linear = random_linear_case(random, shape);
      linear.to.range.high = 127;
      for (const int32_t low : {-128, -120}) {
        linear.to.range.low = low;
        for (const int32_t apart : {0, 7}) compare_case(with_images(random, linear, 3, apart));
      }
    }
  }
}

TEST_CASE("many images of few positions") {
  RandomSource random(37);
  for (const int32_t apart : {0, 5}) {
    for (const Shape in : {Shape{1, 1, 16}, Shape{1, 7, 30}, Shape{4, 4, 16}}) {
      const LinearShape shape = {OpKind::conv2d, in, 16, {1, 1, 1, 1, 0, 0}, 0, 0};
      compare_case(with_images(random, random_linear_case(random, shape), 250, apart));
    }
  }
}

TEST_CASE("conv2d whose input is cut into bands of rows") {
  RandomSource random(33);
  compare_case(random_linear_batch(random, {OpKind::conv2d, {32, 32, 16}, 16, {3, 3, 1, 1, 1, 1}, 1, 1}));
  compare_case(random_linear_batch(random, {OpKind::conv2d, {33, 65, 9}, 24, {3, 5, 2, 2, 0, 2}, 1, 2}));
  compare_case(random_linear_batch(random, {OpKind::conv2d, {70, 70, 3}, 16, {3, 3, 2, 2, 0, 0}, 1, 1}));
  compare_case(random_linear_batch(random, {OpKind::conv2d, {3, 300, 5}, 10, {2, 2, 1, 1, 1, 0}, 0, 1}));
  compare_case(random_linear_batch(random, {OpKind::conv2d, {40, 40, 8}, 40, {1, 1, 1, 1, 0, 0}, 0, 0}));
  compare_case(random_linear_batch(random, {OpKind::conv2d, {32, 32, 16}, 32, {1, 1, 2, 2, 0, 0}, 0, 0}));
  compare_case(random_linear_batch(random, {OpKind::conv2d, {40, 40, 32}, 2, {1, 1, 1, 1, 0, 0}, 0, 0}));
  compare_case(random_linear_batch(random, {OpKind::conv2d, {40, 40, 32}, 8, {1, 1, 1, 1, 0, 0}, 0, 0}));
  compare_case(random_linear_batch(random, {OpKind::conv2d, {18, 16, 512}, 8, {1, 1, 1, 1, 0, 0}, 0, 0}));
  compare_case(random_linear_batch(random, {OpKind::conv2d, {241, 1, 16}, 48, {1, 1, 1, 1, 0, 0}, 0, 0}));
  compare_case(random_linear_batch(random, {OpKind::conv2d, {4, 4, 576}, 160, {1, 1, 1, 1, 0, 0}, 0, 0}));
  compare_case(random_linear_batch(random, {OpKind::conv2d, {60, 5, 200}, 17, {3, 5, 1, 2, 1, 0}, 2, 0}));
}

namespace {

// Windows of 3x3 by stride 1, with an even number of output rows and columns: some kernels compute four outputs at
// once.
LinearShape random_squares(RandomSource& random, int32_t in_channels, int32_t out_channels) {
  const int32_t pad_top = random.integer(0, 2), pad_left = random.integer(0, 2);
  const int32_t pad_bottom = random.integer(0, 2), pad_right = random.integer(0, 2);
  const int32_t height = std::max(1, 2 * random.integer(1, 6) + 2 - pad_top - pad_bottom);
  const int32_t width = std::max(1, 2 * random.integer(1, 6) + 2 - pad_left - pad_right);
  const Window window = {3, 3, 1, 1, pad_top, pad_left};
  return {OpKind::conv2d, {height, width, in_channels}, out_channels, window, pad_bottom, pad_right};
}

}  // namespace

TEST_CASE("3x3 conv2d in squares of outputs") {
  RandomSource random(38);
  for (const int32_t in_channels : {16, 24, 32, 48, 80}) {
    for (const int32_t out_channels : {8, 16, 17, 24, 40, 64}) {
      for (int32_t i = 0; i < 4; ++i) {
        CAPTURE(in_channels);
        CAPTURE(out_channels);
        const LinearShape shape = random_squares(random, in_channels, out_channels);
        compare_case(random_linear_batch(random, shape));
        check_perturbed(random, random_linear_case(random, shape));
      }
    }
  }
  compare_case(random_linear_batch(random, {OpKind::conv2d, {32, 32, 16}, 16, {3, 3, 1, 1, 1, 1}, 1, 1}));
  compare_case(with_images(random, random_linear_case(random, random_squares(random, 16, 16)), 60, 3));
  for (const Window& other :  // and windows that are nearly such
       {Window{3, 3, 1, 2, 1, 1}, Window{3, 3, 2, 1, 1, 1}, Window{3, 5, 1, 1, 1, 2}, Window{5, 3, 1, 1, 2, 1}}) {
    const LinearShape shape = {OpKind::conv2d, {8, 8, 16}, 16, other, other.pad_top, other.pad_left};
    compare_case(random_linear_batch(random, shape));
  }
}

TEST_CASE("3x3 conv2d of the largest sums") {
  RandomSource random(39);
  for (const int32_t in_channels : {16, 1024, 2048}) {
    for (const int32_t zero : {-128, 127}) {
      LinearCase linear =
          random_linear_case(random, {OpKind::conv2d, {4, 4, in_channels}, 16, {3, 3, 1, 1, 0, 0}, 0, 0});
      linear.input_zero = zero;
      // Four kinds of channels: the signs of inputs and weights agree, or change from place to place.
      for (size_t i = 0; i < linear.input.size(); ++i) linear.input[i] = zero < 0 || random.chance(4) ? 127 : -128;
      const size_t of_channel = linear.weights.size() / 16;
      for (size_t i = 0; i < linear.weights.size(); ++i) {
        const bool is_low = i / of_channel % 2 == 0 || random.chance(4);
        linear.weights[i] = is_low ? -128 : 127;
      }
      compare_case(linear);
    }
  }
}

TEST_CASE("3x3 conv2d whose sums are not exact floats") {
  LinearCase linear;
  linear.shape = {OpKind::conv2d, {4, 4, 64}, 16, {3, 3, 1, 1, 0, 0}, 0, 0};
  linear.out = {2, 2, 16};
  linear.input_zero = -128;
  linear.input.assign(size_t{4} * 4 * 64, 127);
  for (size_t i = 0; i < linear.input.size(); i += 64) linear.input[i] = -127;
  for (int32_t c = 0; c < 16; ++c) {
    for (int32_t tap = 0; tap < 9 * 64; ++tap) {
      const bool is_first = tap % 64 == 0;  // its inputs are 1, the others 255
      linear.weights.push_back(static_cast<int8_t>(is_first ? (tap == 0 ? 2 : 0) : (tap < 22 ? 117 : 116)));
    }
  }
  linear.to.bias = reference::Vector<int32_t>::from_shape({16});
  linear.to.scales = reference::Vector<float>::from_shape({16});
  linear.to.bias.fill(1);
  linear.to.scales.fill(2.5F / (1 << 24));
  linear.to.range = {0, -128, 127};
  // 255 * 65793 + 2 is 2^24 + 1, which loses its 1, and so does 2^24 + the bias: 2.5 goes to 2.
  const std::vector<int8_t> expected(64, 2);
  for (const Kernels* kernels : tested_kernels()) {
    CAPTURE(kernels->name);
    CHECK(kernel_output(*kernels, linear, 16) == expected);
  }
  CHECK(expected_output(linear) == expected);
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
  for (const Kernels* kernels : tested_kernels()) CHECK(kernel_output(*kernels, linear, 1) == expected);
  CHECK(expected_output(linear) == expected);
}

TEST_CASE("perturbed packed weights are the packed form of perturbed weights") {
  RandomSource random(34);
  for (int32_t i = 0; i < 100; ++i) {
    CAPTURE(i);
    LinearShape shape = random_conv(random, random.integer(1, 4), random.integer(1, 4), random.integer(1, 40));
    shape.out_channels = random.integer(1, 60);
    if (random.chance(3)) shape.kind = OpKind::fully_connected;
    check_perturbed(random, random_linear_case(random, shape));
  }
}

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
