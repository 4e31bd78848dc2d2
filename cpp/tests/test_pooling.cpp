#include <doctest/doctest.h>

#include <algorithm>

#include "reference/ops.hpp"
#include "tests/linear_case.hpp"
#include "tests/simulated_kernels.hpp"

using namespace pmt;
using namespace pmt::tests;

namespace {

struct PoolCase {
  Shape in, out;
  Window window;
  std::vector<int8_t> input;
  int32_t low, high;
};

PoolCase random_pool(RandomSource& random, int32_t kernel_h, int32_t kernel_w, int32_t channels) {
  const int32_t pad_bottom = random.integer(0, kernel_h - 1), pad_right = random.integer(0, kernel_w - 1);
  const Window window = {kernel_h,
                         kernel_w,
                         random.integer(1, 3),
                         random.integer(1, 3),
                         random.integer(0, kernel_h - 1),
                         random.integer(0, kernel_w - 1)};
  const Shape in = {random.integer(kernel_h, 9), random.integer(kernel_w, 9), channels};
  const Shape out = output_shape({OpKind::average_pool, in, channels, window, pad_bottom, pad_right});
  const int32_t low = random.integer(-128, 0);
  return {in,     out,
          window, random.bytes(static_cast<int64_t>(in.height) * in.width * channels),
          low,    random.integer(1, 127)};
}

using PoolKernel = void (*)(const PoolArgs&);

std::vector<int8_t> run(PoolKernel kernel, const PoolCase& pool) {
  std::vector<int8_t> output(static_cast<size_t>(pool.out.height * pool.out.width * pool.out.channels));
  kernel({pool.input.data(),
          output.data(),
          {1, 0, 0},
          pool.in,
          pool.out,
          pool.window,
          0,
          0,
          true,
          1.0f,
          pool.low,
          pool.high});
  return output;
}

void compare(const PoolCase& pool) {
  const reference::Image input = image_of(pool.input, pool.in);
  const reference::ClampBounds bounds = {pool.low, pool.high};
  const std::vector<int8_t> average = values_of(reference::average_pool(input, pool.window, pool.out, bounds));
  const std::vector<int8_t> maximum = values_of(reference::max_pool(input, pool.window, pool.out, bounds));
  for (const Kernels* kernels : tests::tested_kernels()) {
    CAPTURE(kernels->name);
    CHECK(run(kernels->average_pool, pool) == average);
    CHECK(run(kernels->max_pool, pool) == maximum);
  }
}

struct MeanCase {
  Shape in;
  std::vector<int8_t> input;
  int32_t input_zero;
  float ratio;
  reference::OutputRange range;
};

std::vector<int8_t> run_mean(const Kernels& kernels, const MeanCase& mean, bool same_quantization) {
  const Shape& in = mean.in;
  std::vector<int8_t> output(static_cast<size_t>(in.channels));
  kernels.mean({mean.input.data(),
                output.data(),
                {1, 0, 0},
                in,
                {1, 1, in.channels},
                {1, 1, 1, 1, 0, 0},
                mean.input_zero,
                mean.range.zero_point,
                same_quantization,
                mean.ratio,
                mean.range.low,
                mean.range.high});
  return output;
}

void compare(const MeanCase& mean) {
  CAPTURE(mean.in.channels);
  const reference::Image input = image_of(mean.input, mean.in);
  const std::vector<int8_t> same = values_of(reference::mean(input, mean.range));
  const std::vector<int8_t> rescaled =
      values_of(reference::rescaled_mean(input, mean.input_zero, mean.ratio, mean.range));
  for (const Kernels* kernels : tests::tested_kernels()) {
    CAPTURE(kernels->name);
    CHECK(run_mean(*kernels, mean, true) == same);
    CHECK(run_mean(*kernels, mean, false) == rescaled);
  }
}

}  // namespace

TEST_CASE("average_pool and max_pool give the bytes of their definitions") {
  RandomSource random(8);
  for (const int32_t kernel_h : {1, 2, 3, 5, 7}) {
    for (const int32_t kernel_w : {1, 2, 3, 7}) {
      for (const int32_t channels : {1, 3, 7, 8, 9, 15, 16, 17, 24, 31, 48}) {
        CAPTURE(kernel_h);
        CAPTURE(kernel_w);
        CAPTURE(channels);
        compare(random_pool(random, kernel_h, kernel_w, channels));
      }
    }
  }
}

TEST_CASE("pools over many pixels of extreme values") {
  for (const int32_t channels : {1, 8, 19}) {
    for (const int8_t value : {-128, 127}) {
      CAPTURE(channels);
      CAPTURE(value);
      const Shape in = {24, 32, channels};
      const std::vector<int8_t> input(static_cast<size_t>(in.height * in.width * channels), value);
      compare(PoolCase{in, {1, 1, channels}, {in.height, in.width, 1, 1, 0, 0}, input, -128, 127});
      compare(MeanCase{in, input, -3, 0.7f, {2, -128, 127}});
    }
  }
}

TEST_CASE("pools of images that lie apart") {
  const int32_t images = 3, stride = 3 * 3 * 20 + 7, output_stride = 20 + 5;
  RandomSource random(23);
  const std::vector<int8_t> input = random.bytes(2 * stride + 3 * 3 * 20);
  for (const Kernels* kernels : tests::tested_kernels()) {
    for (const PoolKernel kernel : {kernels->average_pool, kernels->max_pool, kernels->mean}) {
      CAPTURE(kernels->name);
      PoolArgs args = {nullptr, nullptr, {1, 0, 0}, {3, 3, 20}, {1, 1, 20}, {3, 3, 1, 1, 0, 0},
                       4,       -9,      false,     1.5f,       -128,       127};
      std::vector<int8_t> expected(static_cast<size_t>(2 * output_stride + 20), 99), output = expected;
      for (int32_t i = 0; i < images; ++i) {
        args.input = input.data() + i * stride;
        args.output = expected.data() + i * output_stride;
        kernel(args);
      }
      args.input = input.data();
      args.output = output.data();
      args.batch = {images, stride, output_stride};
      kernel(args);
      CHECK(output == expected);
      CHECK(std::count(output.begin() + 20, output.begin() + output_stride, 99) == output_stride - 20);
    }
  }
}

TEST_CASE("average_pool counts no padding and rounds halves to even") {
  const PoolCase pool = {{2, 2, 1}, {2, 2, 1}, {2, 2, 2, 2, 1, 1}, {1, 2, -3, 100}, -128, 50};
  const PoolCase halves = {{1, 4, 1}, {1, 2, 1}, {1, 2, 1, 2, 0, 0}, {1, 2, -2, -1}, -128, 127};
  for (const Kernels* kernels : tests::tested_kernels()) {
    CAPTURE(kernels->name);
    CHECK(run(kernels->average_pool, pool) == std::vector<int8_t>{1, 2, -3, 50});
    CHECK(run(kernels->average_pool, halves) == std::vector<int8_t>{2, -2});
  }
}

TEST_CASE("mean gives the bytes of its definition") {
  RandomSource random(9);
  for (int i = 0; i < 300; ++i) {
    const std::vector<int32_t> channels = {1, 3, 8, 11, 16, 17, 31, 48};
    const Shape in = {random.integer(1, 9), random.integer(1, 9), random.pick(channels)};
    const int32_t low = random.integer(-128, 0);
    compare(MeanCase{in,
                     random.bytes(static_cast<int64_t>(in.height) * in.width * in.channels),
                     random.integer(-128, 127),
                     random.chance(10) ? 1e12f : static_cast<float>(random.real(0.1, 5.0)),
                     {random.integer(-128, 127), low, random.integer(1, 127)}});
  }
}

TEST_CASE("mean of literal numbers") {
  // Channel 0: 2.5, channel 1: -2.5.
  const MeanCase mean = {{2, 2, 2}, {1, -1, 2, -2, 3, -3, 4, -4}, -4, 3.0f, {10, -128, 127}};
  for (const Kernels* kernels : tests::tested_kernels()) {
    CAPTURE(kernels->name);
    CHECK(run_mean(*kernels, mean, true) == std::vector<int8_t>{2, -2});
    // (2.5 + 4) * 3 + 10 = 29.5, (-2.5 + 4) * 3 + 10 = 14.5
    CHECK(run_mean(*kernels, mean, false) == std::vector<int8_t>{30, 14});
  }
}
