// The rule in 128-bit integers against its definition, and against the compiler's own.
#include <doctest/doctest.h>

#include <cmath>
#include <vector>

#include "core/learn/paired_losses.hpp"
#include "tests/random_source.hpp"

using namespace pmt;
using tests::RandomSource;

namespace {

bool by_compiler(const std::vector<int64_t>& differences, int32_t errors) {
  __extension__ using Wide = __int128;
  Wide sum = 0, squares = 0;
  for (const int64_t d : differences) {
    sum += d;
    squares += Wide{d} * d;
  }
  const Wide n = static_cast<Wide>(differences.size()), square = Wide{errors} * errors;
  return sum > 0 && sum * sum * (n - 1 + square) > square * n * squares;
}

}  // namespace

TEST_CASE("a state is worse by standard errors of the differences") {
  for (uint64_t seed = 0; seed < 300; ++seed) {
    RandomSource random(seed);
    const int32_t n = random.integer(2, 60), errors = random.integer(1, PairedLosses::most_errors);
    const int32_t range = random.pick<int32_t>({3, 1000, 1 << 20, INT32_MAX});
    const double shift = random.real(-0.5, 1.0);
    PairedLosses pairs;
    std::vector<int64_t> differences;
    for (int32_t i = 0; i < n; ++i) {
      const auto loss = static_cast<int32_t>(random.real(-1.0, 1.0) * range * 0.5 + shift * range * 0.5);
      const int32_t than = random.integer(-range / 2, range / 2);
      pairs.add(loss, than);
      differences.push_back(int64_t{loss} - than);
    }
    CHECK(pairs.is_worse(errors) == by_compiler(differences, errors));
    double mean = 0.0, square = 0.0;
    for (const int64_t d : differences) mean += static_cast<double>(d) / n;
    for (const int64_t d : differences) square += std::pow(static_cast<double>(d) - mean, 2);
    const double margin = mean - errors * std::sqrt(square / (n - 1.0) / n);
    if (std::abs(margin) > 1e-9 * range) CHECK(pairs.is_worse(errors) == (margin > 0.0));
  }
}

TEST_CASE("at exactly the standard errors no state is worse, one unit above them it is") {
  for (uint64_t seed = 0; seed < 50; ++seed) {
    RandomSource random(seed);
    // 56 of 441 equal differences, the others 0, are 8 standard errors.
    const int32_t loss = random.integer(INT32_MAX / 2, INT32_MAX), than = -random.integer(INT32_MAX / 2, INT32_MAX);
    PairedLosses equal;
    for (int32_t i = 0; i < 440; ++i) equal.add(i < 56 ? loss : 0, i < 56 ? than : 0);
    PairedLosses above = equal, below = equal;
    equal.add(0, 0);
    above.add(1, 0);
    below.add(0, 1);
    CHECK_FALSE(equal.is_worse(8));
    CHECK(above.is_worse(8));
    CHECK_FALSE(below.is_worse(8));
    CHECK(equal.is_worse(7));
  }
}

TEST_CASE("the largest losses of the most samples stay inside 128 bits") {
  PairedLosses higher, lower, mixed;
  for (int32_t i = 0; i < PairedLosses::most_samples; ++i) {
    higher.add(INT32_MAX, INT32_MIN);
    lower.add(INT32_MIN, INT32_MAX);
    mixed.add(i % 2 == 0 ? INT32_MAX : INT32_MIN, 0);
  }
  CHECK(higher.is_worse(PairedLosses::most_errors));
  CHECK_FALSE(lower.is_worse(1));
  CHECK_FALSE(mixed.is_worse(1));
}

TEST_CASE("nothing is worse than itself, and one sample tells") {
  PairedLosses equal, one;
  CHECK_FALSE(equal.is_worse(1));
  equal.add(5, 5);
  equal.add(7, 7);
  CHECK_FALSE(equal.is_worse(1));
  one.add(2, 1);
  CHECK_FALSE(one.is_worse(1));
}
