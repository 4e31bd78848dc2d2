#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/zo/exponential.hpp"
#include "core/zo/loss.hpp"
#include "core/zo/loss_units.hpp"
#include "reference/losses.hpp"
#include "tests/random_source.hpp"

using namespace pmt;
using tests::RandomSource;

namespace {

double real(int32_t fixed) { return static_cast<double>(fixed) / 1048576.0; }

std::vector<float> random_logits(RandomSource& random, int32_t classes) {
  std::vector<float> logits(static_cast<size_t>(classes));
  const double spread = std::pow(10.0, random.real(-2.0, 2.0));
  for (float& logit : logits) logit = static_cast<float>(random.real(-spread, spread));
  return logits;
}

reference::Vector<double> in_double(const std::vector<float>& logits) {
  auto values = reference::Vector<double>::from_shape({logits.size()});
  std::copy(logits.begin(), logits.end(), values.begin());
  return values;
}

}  // namespace

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

TEST_CASE("cross_entropy agrees with double") {
  RandomSource random(14);
  for (int i = 0; i < 3000; ++i) {
    const int32_t classes = random.pick<int32_t>({2, 10, 100, 1000});
    const std::vector<float> logits = random_logits(random, classes);
    const int32_t label = random.integer(0, classes - 1);
    const double exact = reference::cross_entropy(in_double(logits), static_cast<size_t>(label));
    const double loss = real(cross_entropy(logits.data(), classes, label));
    CAPTURE(classes);
    // Half a step of the fixed point, and float sums of up to 1000 terms.
    CHECK(std::abs(loss - exact) <= 0.5 / 1048576.0 + 2e-6 * std::max(1.0, exact));
  }
}

TEST_CASE("cross_entropy_gradient agrees with double") {
  RandomSource random(15);
  for (int i = 0; i < 1000; ++i) {
    const int32_t classes = random.pick<int32_t>({2, 10, 100});
    const std::vector<float> logits = random_logits(random, classes);
    const int32_t label = random.integer(0, classes - 1);
    std::vector<int32_t> gradient(logits.size());
    cross_entropy_gradient(logits.data(), classes, label, gradient.data());
    const auto exact = reference::cross_entropy_gradient(in_double(logits), static_cast<size_t>(label));
    double largest = 0.0;
    for (size_t c = 0; c < logits.size(); ++c) largest = std::max(largest, std::abs(real(gradient[c]) - exact(c)));
    CHECK(largest < 2.0 / 1048576.0);
  }
}

TEST_CASE("losses of literal logits") {
  const float even[] = {3.0f, 3.0f};
  CHECK(cross_entropy(even, 2, 0) == 726818);  // log 2 = 726817.498 in 2^-20, its float 726817.5
  const float wrong[] = {0.0f, 5000.0f};
  CHECK(cross_entropy(wrong, 2, 0) == 1024 << 20);  // the bound
  CHECK(cross_entropy(wrong, 2, 1) == 0);
  int32_t gradient[2];
  cross_entropy_gradient(even, 2, 1, gradient);
  CHECK(gradient[0] == 1 << 19);
  CHECK(gradient[1] == -(1 << 19));
}

TEST_CASE("the gradient of literal logits is rounded to the nearest") {
  const float even[] = {2.0f, 2.0f, 2.0f, 2.0f, 2.0f, 2.0f};
  int32_t gradient[6];
  cross_entropy_gradient(even, 6, 5, gradient);
  for (int32_t c = 0; c < 5; ++c) CHECK(gradient[c] == 174763);  // 2^20 / 6 = 174762.67
  CHECK(gradient[5] == 174763 - (1 << 20));
}

TEST_CASE("logits without a softmax have the largest loss and no gradient") {
  const float nan = std::nanf(""), infinity = INFINITY;
  const float none[][3] = {{nan, nan, nan},
                           {nan, 1.0f, 2.0f},
                           {1.0f, nan, 2.0f},
                           {1.0f, 2.0f, nan},
                           {infinity, 0.0f, 0.0f},
                           {infinity, infinity, 0.0f},
                           {-infinity, -infinity, -infinity}};
  for (const auto& logits : none) {
    for (int32_t label = 0; label < 3; ++label) {
      CHECK(cross_entropy(logits, 3, label) == 1024 << 20);
      int32_t gradient[3] = {1, 1, 1};
      cross_entropy_gradient(logits, 3, label, gradient);
      for (const int32_t value : gradient) CHECK(value == 0);
    }
  }
  const float one[] = {0.0f, -infinity, 0.0f};  // a class that cannot be
  CHECK(cross_entropy(one, 3, 0) == 726818);
  CHECK(cross_entropy(one, 3, 1) == 1024 << 20);
}

TEST_CASE("arg_max takes the first of equals") {
  const float logits[] = {1.0f, 4.0f, 4.0f, -2.0f};
  CHECK(arg_max(logits, 4) == 1);
}
