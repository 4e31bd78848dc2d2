#include <doctest/doctest.h>

#include <algorithm>
#include <climits>
#include <cmath>
#include <cstdint>
#include <limits>

#include "core/base/arithmetic.hpp"
#include "core/base/crc32.hpp"
#include "core/kernels/requantize.hpp"
#include "core/zo/exponential.hpp"
#include "reference/ops.hpp"
#include "tests/random_source.hpp"

using namespace pmt;

TEST_CASE("round_half_even is right at every tie and beside it") {
  int64_t wrong = 0;
  for (int32_t whole = -(1 << 22) + 1; whole < (1 << 22) - 1; ++whole) {
    const float tie = static_cast<float>(whole) + 0.5f;
    for (const float value : {static_cast<float>(whole), std::nextafter(tie, -1e9f), tie, std::nextafter(tie, 1e9f)}) {
      wrong += round_half_even(value) != static_cast<int32_t>(std::nearbyint(value));
    }
  }
  CHECK(wrong == 0);
}

TEST_CASE("round_half_even of literal numbers") {
  CHECK(round_half_even(0.5f) == 0);
  CHECK(round_half_even(1.5f) == 2);
  CHECK(round_half_even(2.5f) == 2);
  CHECK(round_half_even(-0.5f) == 0);
  CHECK(round_half_even(-1.5f) == -2);
  CHECK(round_half_even(0.50000006f) == 1);
}

TEST_CASE("round_saturating stays at 2^21 for any finite value") {
  CHECK(round_saturating(3e38f) == 2097152);
  CHECK(round_saturating(-3e38f) == -2097152);
  CHECK(round_saturating(127.5f) == 128);
}

TEST_CASE("to_float rounds as a correctly rounded cast") {
  tests::RandomSource random(10);
  int64_t wrong = 0;
  const auto compare = [&](int64_t value) { wrong += to_float(value) != static_cast<float>(value); };
  for (int i = 0; i < 300000; ++i) compare(static_cast<int64_t>(random.bits()) >> random.integer(0, 63));
  for (int shift = 1; shift < 40; ++shift) {  // 24 significant bits, then a tie and its neighbors
    for (int i = 0; i < 500; ++i) {
      const int64_t mantissa = random.integer(1 << 23, (1 << 24) - 1);
      const int64_t tie = (2 * mantissa + 1) << (shift - 1);
      for (const int64_t value : {tie - 1, tie, tie + 1}) {
        compare(value);
        compare(-value);
      }
    }
  }
  for (const int64_t value : {INT64_MIN, INT64_MIN + 1, INT64_MAX, int64_t{0}, int64_t{1}, int64_t{-1}}) compare(value);
  CHECK(wrong == 0);
}

TEST_CASE("divide_rounded takes halves away from zero") {
  CHECK(divide_rounded(7, 2) == 4);
  CHECK(divide_rounded(-7, 2) == -4);
  CHECK(divide_rounded(4, 3) == 1);
  CHECK(divide_rounded(5, 3) == 2);
  CHECK(divide_rounded(-5, 3) == -2);
  CHECK(divide_rounded(0, 5) == 0);
}

TEST_CASE("clamp, round_up and is_finite") {
  CHECK(pmt::clamp(5, -1, 3) == 3);
  CHECK(pmt::clamp(-5, -1, 3) == -1);
  CHECK(pmt::clamp(0.5f, 0.0f, 1.0f) == 0.5f);
  CHECK(round_up(0, 16) == 0);
  CHECK(round_up(1, 16) == 16);
  CHECK(round_up(16, 16) == 16);
  CHECK(is_finite(std::numeric_limits<float>::max()));
  CHECK(!is_finite(std::numeric_limits<float>::infinity()));
  CHECK(!is_finite(std::numeric_limits<float>::quiet_NaN()));
}

TEST_CASE("crc32 is zlib's") {
  const auto* digits = reinterpret_cast<const uint8_t*>("123456789");
  CHECK(crc32(digits, 9) == 0xCBF43926u);
  CHECK(crc32(digits, 0) == 0u);
  CHECK(crc32(digits + 4, 5, crc32(digits, 4)) == 0xCBF43926u);
}

// Exponential and logarithm without a library, against those in double.
TEST_CASE("exp_negative stays inside the relative error it states") {
  double largest = 0.0;
  for (int32_t i = 0; i <= 3000000; ++i) {
    const float x = -87.0f * (static_cast<float>(i) / 3000000.0f);
    const double exact = std::exp(static_cast<double>(x));
    largest = std::max(largest, std::abs(static_cast<double>(exp_negative(x)) - exact) / exact);
  }
  for (float x = -1.0f; x < -1e-30f; x *= 0.999f) {
    const double exact = std::exp(static_cast<double>(x));
    largest = std::max(largest, std::abs(static_cast<double>(exp_negative(x)) - exact) / exact);
  }
  CAPTURE(largest);
  CHECK(largest < 3e-7);
  CHECK(exp_negative(0.0f) == 1.0f);
  CHECK(exp_negative(-87.5f) == 0.0f);
  CHECK(exp_negative(-3e38f) == 0.0f);
}

TEST_CASE("log_at_least_one stays inside the error it states") {
  double largest = 0.0;
  const auto compare = [&](float x) {
    const double exact = std::log(static_cast<double>(x));
    const double error = std::abs(static_cast<double>(log_at_least_one(x)) - exact);
    largest = std::max(largest, error / std::max(1.0, exact));
  };
  for (float x = 1.0f; x < 1.0e6f; x *= 1.00001f) compare(x);
  for (float x = 1.0f; x < 3.0e38f; x *= 1.001f) compare(x);
  for (float x = 1.0f; x < 1.001f; x = std::nextafter(x, 2.0f)) compare(x);
  CAPTURE(largest);
  CHECK(largest < 2e-7);
  CHECK(log_at_least_one(1.0f) == 0.0f);
}

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
