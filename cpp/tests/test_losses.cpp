// Every loss against its definition in double, and its gradient against finite differences of that.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <vector>

#include "core/zo/loss.hpp"
#include "core/zo/loss_range.hpp"
#include "core/zo/loss_units.hpp"
#include "reference/training_step.hpp"
#include "tests/random_source.hpp"

using namespace pmt;
using tests::RandomSource;

namespace {

using Doubles = reference::Vector<double>;

double real(int64_t fixed) { return static_cast<double>(fixed) / 1048576.0; }

Doubles in_double(const std::vector<float>& values) {
  auto result = Doubles::from_shape({values.size()});
  std::copy(values.begin(), values.end(), result.begin());
  return result;
}

// A sample of any number of classes, with what the losses take besides its logits.
struct Case {
  explicit Case(RandomSource& random) : Case(random, random.pick<int32_t>({2, 3, 10, 100})) {}
  Case(RandomSource& random, int32_t count)
      : classes(count), label(random.integer(0, classes - 1)), diversity(static_cast<float>(random.real(0.0, 3.0))) {
    const double spread = std::pow(10.0, random.real(-2.0, 1.3));
    const bool soft = random.chance(2);
    for (int32_t c = 0; c < classes; ++c) {
      logits.push_back(static_cast<float>(random.real(-spread, spread)));
      targets.push_back(soft ? static_cast<float>(random.real(0.0, 1.0)) : (c == label ? 1.0f : 0.0f));
      surprisal.push_back(static_cast<float>(random.real(0.0, 13.0)));
    }
    target = {label, soft ? targets.data() : nullptr};
  }
  Case(const Case&) = delete;
  Case& operator=(const Case&) = delete;

  size_t index() const { return static_cast<size_t>(label); }
  EntropyTerms terms() const { return {diversity, surprisal.data()}; }

  int32_t classes, label;
  float diversity;
  std::vector<float> logits, targets, surprisal;
  Target target = {0};
};

std::vector<float> random_logits(RandomSource& random, int32_t classes) {
  std::vector<float> logits(static_cast<size_t>(classes));
  const double spread = std::pow(10.0, random.real(-2.0, 2.0));
  for (float& logit : logits) logit = static_cast<float>(random.real(-spread, spread));
  return logits;
}

struct NamedLoss {
  const char* name;
  std::function<int32_t(const Case&, const float*)> value;
  std::function<void(const Case&, const float*, int32_t*)> gradient;
  std::function<double(const Case&, const Doubles&)> definition;
};

const std::vector<NamedLoss>& all_losses() {
  static const std::vector<NamedLoss> losses = {
      {"cross_entropy", [](const Case& c, const float* z) { return cross_entropy(z, c.classes, c.label); },
       [](const Case& c, const float* z, int32_t* g) { cross_entropy_gradient(z, c.classes, c.label, g); },
       [](const Case& c, const Doubles& z) { return reference::cross_entropy(z, c.index()); }},
      {"squared_error", [](const Case& c, const float* z) { return squared_error(z, c.classes, c.target, 0); },
       [](const Case& c, const float* z, int32_t* g) { squared_error_gradient(z, c.classes, c.target, 0, g); },
       [](const Case& c, const Doubles& z) { return reference::squared_error(z, in_double(c.targets)); }},
      {"binary_cross_entropy",
       [](const Case& c, const float* z) { return binary_cross_entropy(z, c.classes, c.target); },
       [](const Case& c, const float* z, int32_t* g) { binary_cross_entropy_gradient(z, c.classes, c.target, g); },
       [](const Case& c, const Doubles& z) { return reference::binary_cross_entropy(z, in_double(c.targets)); }},
      {"entropy", [](const Case& c, const float* z) { return entropy(z, c.classes, c.terms()); },
       [](const Case& c, const float* z, int32_t* g) { entropy_gradient(z, c.classes, c.terms(), g); },
       [](const Case& c, const Doubles& z) { return reference::entropy(z, c.diversity, in_double(c.surprisal)); }},
  };
  return losses;
}

}  // namespace

TEST_CASE("every loss agrees with its definition in double") {
  RandomSource random(140);
  for (int i = 0; i < 2000; ++i) {
    const Case one(random);
    for (const NamedLoss& loss : all_losses()) {
      CAPTURE(loss.name);
      CAPTURE(one.classes);
      const double exact = std::min(loss.definition(one, in_double(one.logits)), 1024.0);
      // Half a step of the fixed point, and float sums of up to 100 terms of up to 400 and of up to 39.
      CHECK(std::abs(real(loss.value(one, one.logits.data())) - exact) <=
            0.5 / 1048576.0 + 2e-6 * std::max(20.0, std::abs(exact)));
    }
  }
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

TEST_CASE("every gradient agrees with finite differences of the definition") {
  RandomSource random(141);
  for (int i = 0; i < 500; ++i) {
    const Case one(random);
    for (const NamedLoss& loss : all_losses()) {
      CAPTURE(loss.name);
      CAPTURE(one.classes);
      std::vector<int32_t> gradient(one.logits.size(), 77);
      loss.gradient(one, one.logits.data(), gradient.data());
      const double step = 1e-5;
      for (size_t c = 0; c < one.logits.size(); ++c) {
        Doubles moved = in_double(one.logits);
        moved(c) += step;
        const double above = loss.definition(one, moved);
        moved(c) -= 2.0 * step;
        const double below = loss.definition(one, moved);
        CHECK(std::abs(real(gradient[c]) - (above - below) / (2.0 * step)) <= 5e-5);
      }
    }
  }
}

TEST_CASE("logits that are not numbers, or infinite as the largest, have the largest loss and no gradient") {
  RandomSource random(142);
  const float nan = std::nanf(""), infinity = INFINITY;
  for (const NamedLoss& loss : all_losses()) {
    CAPTURE(loss.name);
    const float none[][3] = {{nan, nan, nan},
                             {nan, 1.0f, 2.0f},
                             {1.0f, nan, 2.0f},
                             {1.0f, 2.0f, nan},
                             {infinity, 0.0f, 0.0f},
                             {infinity, infinity, 0.0f},
                             {infinity, -infinity, 0.0f},
                             {-infinity, -infinity, -infinity}};
    for (int32_t draw = 0; draw < 80; ++draw) {
      const auto& logits = none[draw % 8];
      const Case one(random, 3);
      CHECK(loss.value(one, logits) == 1024 << 20);
      int32_t gradient[3] = {1, 1, 1};
      loss.gradient(one, logits, gradient);
      for (const int32_t value : gradient) CHECK(value == 0);
    }
  }
}

TEST_CASE("losses of huge logits are bounded") {
  RandomSource random(143);
  for (int i = 0; i < 300; ++i) {
    Case one(random);
    for (float& logit : one.logits)
      logit = static_cast<float>(random.real(-1.0, 1.0) * std::pow(10.0, random.real(0, 38)));
    for (const NamedLoss& loss : all_losses()) {
      CAPTURE(loss.name);
      CHECK(std::abs(static_cast<int64_t>(loss.value(one, one.logits.data()))) <= 1024 << 20);
      std::vector<int32_t> gradient(one.logits.size());
      loss.gradient(one, one.logits.data(), gradient.data());
      for (const int32_t value : gradient) CHECK(std::abs(static_cast<int64_t>(value)) <= 1024 << 20);
    }
  }
}

TEST_CASE("squared errors of large outputs are kept in larger units") {
  const TensorRecord wide = {1, 1, 1, 0.8274357318878174f, -128, 0};  // 0 to 211
  CHECK(loss_shift(Loss::squared_error, wide) == 8);                  // (2 * 211)^2 <= 1024 * 2^8
  CHECK(loss_shift(Loss::binary_cross_entropy, wide) == 0);
  CHECK(loss_shift(Loss::squared_error, {1, 1, 1, 0.1254f, 0, 0}) == 0);
  CHECK(loss_shift(Loss::squared_error, {1, 1, 1, 0.1256f, 0, 0}) == 3);
  CHECK(loss_shift(Loss::squared_error, {1, 1, 1, 1e6f, 0, 0}) == largest_loss_shift);
  const float logit = 211.0f, target = -100.0f;
  CHECK(squared_error(&logit, 1, {0, &target}, 8) == fixed_loss(311.0f * 311.0f / 256.0f));
  CHECK(in_loss_units(squared_error(&logit, 1, {0, &target}, 8), 8) == int64_t{311 * 311} << loss_fraction_bits);
  int32_t gradient;
  squared_error_gradient(&logit, 1, {0, &target}, 8, &gradient);
  CHECK(gradient == fixed_gradient(622.0f / 256.0f));
  CHECK(in_loss_units(int64_t{1} << 40, largest_loss_shift) == INT64_MAX);
  CHECK(in_loss_units(-5, 0) == -5);
}

TEST_CASE("every target of the range has a gradient from both ends of the output") {
  RandomSource random(144);
  for (int i = 0; i < 300; ++i) {
    const auto scale = static_cast<float>(std::pow(10.0, random.real(-6.0, 2.4)));
    const TensorRecord output = {1, 1, 1, scale, random.integer(-128, 127), 0};
    const auto value = [&](int32_t stored) { return scale * static_cast<float>(stored - output.zero_point); };
    const int32_t shift = loss_shift(Loss::squared_error, output);
    const TargetRange range = target_range(output);
    const float room = shift > 0 ? (value(127) - value(-128)) * 0.999f : 0.0f;
    CHECK(range.low <= value(-128) - room);
    CHECK(range.high >= value(127) + room);
    for (const float target : {range.low, range.high}) {
      for (const float logit : {value(-128), value(127)}) {
        const float inside = target + (logit - target) * 0.999f;
        CHECK(squared_error(&inside, 1, {0, &target}, shift) < largest_loss);
      }
    }
  }
}

TEST_CASE("losses of literal logits") {
  const float alike[] = {3.0f, 3.0f}, wrong[] = {0.0f, 5000.0f};
  CHECK(cross_entropy(alike, 2, 0) == 726818);      // log 2 = 726817.498 in 2^-20, its float 726817.5
  CHECK(cross_entropy(wrong, 2, 0) == 1024 << 20);  // the bound
  CHECK(cross_entropy(wrong, 2, 1) == 0);
  const float impossible[] = {0.0f, -INFINITY, 0.0f};  // a class that cannot be
  CHECK(cross_entropy(impossible, 3, 0) == 726818);
  CHECK(cross_entropy(impossible, 3, 1) == 1024 << 20);
  const float six[] = {2.0f, 2.0f, 2.0f, 2.0f, 2.0f, 2.0f};
  int32_t sixths[6];
  cross_entropy_gradient(six, 6, 5, sixths);
  for (int32_t c = 0; c < 5; ++c) CHECK(sixths[c] == 174763);  // 2^20 / 6 = 174762.67
  CHECK(sixths[5] == 174763 - (1 << 20));
  const float logits[] = {2.0f, 0.5f, 2.0f};
  CHECK(squared_error(logits, 3, {0}, 0) == fixed_loss((1.0f + 0.25f + 4.0f) / 3.0f));
  const float even[] = {0.0f, 0.0f};
  CHECK(binary_cross_entropy(even, 2, {1}) == 726818);  // log 2
  CHECK(entropy(even, 2, {0.0f, nullptr}) == 726818);
  const float surprisal[] = {1.0f, 3.0f};
  CHECK(entropy(even, 2, {0.5f, surprisal}) == -321759);  // log 2 - 1, half away from zero
  int32_t gradient[3];
  squared_error_gradient(logits, 3, {0}, 0, gradient);
  CHECK(gradient[0] == fixed_gradient(2.0f / 3.0f));
}

TEST_CASE("arg_max takes the first of equals") {
  const float logits[] = {1.0f, 4.0f, 4.0f, -2.0f};
  CHECK(arg_max(logits, 4) == 1);
}
