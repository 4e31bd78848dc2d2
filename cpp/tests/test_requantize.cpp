#include <doctest/doctest.h>

#include <climits>

#include "core/kernels/requantize.hpp"
#include "reference/ops.hpp"
#include "tests/random_source.hpp"

using namespace pmt;

TEST_CASE("requantize rounds halves to even and clamps after the zero point") {
  CHECK(requantize(5, 0, 0.5f, 0, -128, 127) == 2);
  CHECK(requantize(7, 0, 0.5f, 0, -128, 127) == 4);
  CHECK(requantize(-5, 0, 0.5f, 0, -128, 127) == -2);
  CHECK(requantize(-7, 0, 0.5f, 3, -128, 127) == -1);
  CHECK(requantize(1000, 0, 1.0f, -128, -128, 127) == 127);
  CHECK(requantize(1000, 0, 1.0f, -128, -128, 20) == 20);
  CHECK(requantize(-1000, 0, 1.0f, 10, 10, 127) == 10);
}

TEST_CASE("the sum of accumulator and bias does not wrap at the int32 limits") {
  CHECK(requantize(1000, INT_MAX, 1e-8f, 0, -128, 127) == 21);
  CHECK(requantize(-1000, INT_MIN, 1e-8f, 0, -128, 127) == -21);
  CHECK(requantize(INT_MAX, INT_MAX, 1e6f, 0, -128, 127) == 127);
  CHECK(requantize(INT_MIN, INT_MIN, 1e6f, 127, -128, 127) == -128);
}

TEST_CASE("accumulator and bias become floats one by one, then are added") {
  // 2^24 + 1 loses its 1, and so does 2^24 + the bias: 2.5 goes to 2. The exact sum would go to 3.
  CHECK(requantize(16777217, 1, 2.5f / 16777216.0f, 0, -128, 127) == 2);
}

TEST_CASE("requantize gives the bytes of its definition") {
  tests::RandomSource random(6);
  int32_t different = 0;
  for (int i = 0; i < 200000; ++i) {
    const int32_t shift = random.integer(0, 24);
    const auto accumulator = static_cast<int32_t>(static_cast<uint32_t>(random.bits())) >> shift;
    const auto bias = static_cast<int32_t>(static_cast<uint32_t>(random.bits())) >> random.integer(0, 31);
    const auto scale = static_cast<float>(100.0 * (1 << shift) / 2147483648.0 * random.real(0.001, 8.0));
    const int32_t low = random.integer(-128, 126), zero_point = random.integer(-128, 127);
    const int32_t high = random.integer(low + 1, 127);
    const reference::Requantization to = {{bias}, {scale}, {zero_point, low, high}};
    different +=
        requantize(accumulator, bias, scale, zero_point, low, high) != reference::requantize(accumulator, to, 0);
  }
  CHECK(different == 0);
}
