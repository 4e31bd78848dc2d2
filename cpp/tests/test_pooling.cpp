#include <doctest/doctest.h>

#include "reference/mean.hpp"
#include "reference/pooling.hpp"
#include "tests/linear_case.hpp"

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

}  // namespace

TEST_CASE("average_pool and max_pool give the bytes of their definitions") {
  RandomSource random(8);
  for (const int32_t kernel_h : {1, 2, 3, 5, 7}) {
    for (const int32_t kernel_w : {1, 2, 3, 7}) {
      for (const int32_t channels : {1, 3, 16, 17}) {
        const PoolCase pool = random_pool(random, kernel_h, kernel_w, channels);
        const reference::Image input = image_of(pool.input, pool.in);
        const reference::ClampBounds bounds = {pool.low, pool.high};
        CAPTURE(kernel_h);
        CAPTURE(kernel_w);
        CAPTURE(channels);
        CHECK(run(portable_kernels().average_pool, pool) ==
              values_of(reference::average_pool(input, pool.window, pool.out, bounds)));
        CHECK(run(portable_kernels().max_pool, pool) ==
              values_of(reference::max_pool(input, pool.window, pool.out, bounds)));
      }
    }
  }
}

TEST_CASE("average_pool counts no padding and rounds halves to even") {
  const PoolCase pool = {{2, 2, 1}, {2, 2, 1}, {2, 2, 2, 2, 1, 1}, {1, 2, -3, 100}, -128, 50};
  CHECK(run(portable_kernels().average_pool, pool) == std::vector<int8_t>{1, 2, -3, 50});
  const PoolCase halves = {{1, 4, 1}, {1, 2, 1}, {1, 2, 1, 2, 0, 0}, {1, 2, -2, -1}, -128, 127};
  CHECK(run(portable_kernels().average_pool, halves) == std::vector<int8_t>{2, -2});
}

TEST_CASE("mean gives the bytes of its definition") {
  RandomSource random(9);
  for (int i = 0; i < 200; ++i) {
    const Shape in = {random.integer(1, 9), random.integer(1, 9), random.pick<int32_t>({1, 3, 8, 17, 48})};
    const std::vector<int8_t> values = random.bytes(static_cast<int64_t>(in.height) * in.width * in.channels);
    const auto ratio = static_cast<float>(random.real(0.1, 5.0));
    const int32_t input_zero = random.integer(-128, 127);
    const int32_t low = random.integer(-128, 0);
    const reference::OutputRange range = {random.integer(-128, 127), low, random.integer(1, 127)};
    std::vector<int8_t> output(static_cast<size_t>(in.channels));
    PoolArgs args = {values.data(), output.data(),    {1, 0, 0}, in,    {1, 1, in.channels}, {1, 1, 1, 1, 0, 0},
                     input_zero,    range.zero_point, true,      ratio, range.low,           range.high};
    portable_kernels().mean(args);
    CHECK(output == values_of(reference::mean(image_of(values, in), range)));
    args.same_quantisation = false;
    portable_kernels().mean(args);
    CHECK(output == values_of(reference::rescaled_mean(image_of(values, in), input_zero, ratio, range)));
  }
}

TEST_CASE("mean of literal numbers") {
  const std::vector<int8_t> values = {1, -1, 2, -2, 3, -3, 4, -4};  // channel 0: 2.5, channel 1: -2.5
  std::vector<int8_t> output(2);
  PoolArgs args = {values.data(), output.data(), {1, 0, 0}, {2, 2, 2}, {1, 1, 2}, {1, 1, 1, 1, 0, 0}, -4, 10,
                   true,          3.0f,          -128,      127};
  portable_kernels().mean(args);
  CHECK(output == std::vector<int8_t>{2, -2});
  args.same_quantisation = false;  // (2.5 + 4) * 3 + 10 = 29.5, (-2.5 + 4) * 3 + 10 = 14.5
  portable_kernels().mean(args);
  CHECK(output == std::vector<int8_t>{30, 14});
}
