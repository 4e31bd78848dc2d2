#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <limits>

#include "core/base/arithmetic.hpp"
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
