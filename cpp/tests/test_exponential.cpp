// Exponential and logarithm without a library, against those in double.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "core/zo/exponential.hpp"

using namespace pmt;

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
