// Directions against theory: on a linear function the squares of an estimate's norm and error are those of the
// theory, and complete sets of directions give the gradient exactly.
#include <doctest/doctest.h>

#include <cmath>
#include <vector>

#include "core/zo/direction_sums.hpp"
#include "tests/random_network.hpp"
#include "tests/random_source.hpp"
#include "tests/training_run.hpp"

using namespace pmt;
using namespace pmt::tests;

namespace {

using Vector = std::vector<int64_t>;

// One fully connected layer: inputs * outputs weights, and no biases under training.
struct LinearLoss {
  LinearLoss(int32_t inputs, int32_t outputs, TrainerOptions with) : options(with) {
    ImageBuilder builder;
    RandomSource random(70);
    builder.add_tensor({1, 1, inputs});
    builder.add_tensor({1, 1, outputs});
    builder.add_op(plain_op(OpKind::fully_connected, 0, 1), random_linear_data(random, outputs, inputs));
    image = std::make_unique<AlignedBytes>(builder.build());
    REQUIRE(model.open(image->data(), image->size()).ok());
    options.rule = EstimatorRule::weight;
    options.train_bias = 0;
    run = std::make_unique<TrainingRun>(model, options, std::vector<int32_t>{0}, 64, Machine{});
    for (int32_t i = 0; i < inputs * outputs; ++i) gradient.push_back(random.integer(-9, 9));
    for (const int64_t g : gradient) squared_norm += static_cast<double>(g * g);
  }

  const Layer& layer() const { return run->trainer().layer(0); }
  StepContext at(uint32_t step) const {
    StepContext context = run->trainer().context();
    context.step = step;
    return context;
  }

  // gradient . direction, for every query: what a linear loss changes by at mu = 1.
  std::vector<int32_t> differences(uint32_t step, uint32_t sample) const {
    const StepContext context = at(step);
    std::vector<int32_t> all;
    std::vector<int8_t> direction(gradient.size());
    for (int32_t q = 0; q < layer().queries; ++q) {
      Direction(context, run->trainer().workspace(0), layer(), {static_cast<uint32_t>(q), sample},
                Purpose::weight_signs)
          .next(portable_kernels(), layer().weight_count, direction.data());
      int64_t sum = 0;
      for (size_t i = 0; i < gradient.size(); ++i) sum += gradient[i] * direction[i];
      all.push_back(static_cast<int32_t>(sum));
    }
    return all;
  }

  void add(uint32_t step, uint32_t sample, const std::vector<int32_t>& losses, Vector& sums) const {
    Vector bias(static_cast<size_t>(layer().channels));
    add_weight_gradient(at(step), run->trainer().workspace(0), layer(), sample, losses.data(),
                        {sums.data(), bias.data()});
  }

  // Queries times the gradient's estimate.
  Vector estimate(uint32_t step, int32_t samples = 1) const {
    Vector sums(gradient.size());
    for (uint32_t n = 0; n < static_cast<uint32_t>(samples); ++n) add(step, n, differences(step, n), sums);
    return sums;
  }

  Vector times(int64_t factor) const {
    Vector all = gradient;
    for (int64_t& g : all) g *= factor;
    return all;
  }

  std::unique_ptr<AlignedBytes> image;
  Model model;
  TrainerOptions options;
  std::unique_ptr<TrainingRun> run;
  Vector gradient;
  double squared_norm = 0.0;
};

TrainerOptions with(Directions directions, int32_t queries) {
  TrainerOptions options;
  options.directions = directions;
  options.queries = queries;
  return options;
}

// The squared norm and squared error of estimate / queries over many steps, relative to the gradient's own
// squared norm, with the standard errors of their means.
struct Norms {
  double squared, squared_error, error, error_error;
};

Norms norms(const LinearLoss& loss, double queries, int32_t steps) {
  double sums[4] = {0, 0, 0, 0};
  for (int32_t step = 0; step < steps; ++step) {
    const Vector sum = loss.estimate(static_cast<uint32_t>(step));
    double square = 0.0, error = 0.0;
    for (size_t i = 0; i < sum.size(); ++i) {
      const double value = static_cast<double>(sum[i]) / queries, wrong = value - static_cast<double>(loss.gradient[i]);
      square += value * value / loss.squared_norm;
      error += wrong * wrong / loss.squared_norm;
    }
    sums[0] += square;
    sums[1] += square * square;
    sums[2] += error;
    sums[3] += error * error;
  }
  for (double& sum : sums) sum /= steps;
  const auto deviation = [&](double mean, double squares) {
    return std::sqrt(std::max(0.0, squares - mean * mean) / steps);
  };
  return {sums[0], deviation(sums[0], sums[1]), sums[2], deviation(sums[2], sums[3])};
}

void check_norms(const Norms& norms, double squared, double error) {
  CHECK(std::abs(norms.squared - squared) < 3.0 * norms.squared_error + 1e-9);
  CHECK(std::abs(norms.error - error) < 3.0 * norms.error_error + 1e-9);
}

}  // namespace

TEST_CASE("over all 2^d sign vectors a query's estimate is the gradient, exactly") {
  for (int32_t d = 1; d <= 10; ++d) {
    CAPTURE(d);
    RandomSource random(static_cast<uint64_t>(d));
    Vector gradient, sums(static_cast<size_t>(d));
    for (int32_t i = 0; i < d; ++i) gradient.push_back(random.integer(-1000, 1000));
    for (uint32_t signs = 0; signs < 1u << d; ++signs) {
      std::vector<int8_t> direction;
      int64_t difference = 0;
      for (size_t i = 0; i < gradient.size(); ++i) {
        direction.push_back((signs >> i) % 2 == 1 ? -1 : 1);
        difference += direction[i] * gradient[i];
      }
      std::vector<int32_t> sum(sums.size());
      portable_kernels().accumulate_signs(direction.data(), d, static_cast<int32_t>(difference), sum.data());
      for (size_t i = 0; i < sums.size(); ++i) sums[i] += sum[i];
    }
    for (int64_t& g : gradient) g *= int64_t{1} << d;
    CHECK(sums == gradient);
  }
}

TEST_CASE("random signs: squared norm (Q + d - 1) / Q, squared error (d - 1) / Q") {
  const LinearLoss loss(8, 8, with(Directions::rademacher, 16));
  check_norms(norms(loss, 16, 2000), (16 + 64 - 1) / 16.0, 63 / 16.0);
}

TEST_CASE("Hadamard rows: squared norm d / Q, squared error (d - Q) / Q, where the order divides d") {
  for (const int32_t queries : {16, 50, 64}) {
    CAPTURE(queries);
    const LinearLoss loss(8, 8, with(Directions::hadamard, queries));
    check_norms(norms(loss, queries, 1000), 64.0 / queries, (64.0 - queries) / queries);
  }
}

TEST_CASE("antithetic pairs: squared error (2d - 2) / Q of random signs") {
  TrainerOptions options = with(Directions::rademacher, 16);
  options.pairs = Pairs::antithetic;
  check_norms(norms(LinearLoss(8, 8, options), 16, 2000), 1.0 + 126 / 16.0, 126 / 16.0);
}

TEST_CASE("as many Hadamard rows as weights, or coordinates, are the exact gradient") {
  const LinearLoss hadamard(8, 8, with(Directions::hadamard, 64)), coordinates(8, 8, with(Directions::coordinate, 1));
  for (uint32_t step = 0; step < 20; ++step) {
    CHECK(hadamard.estimate(step) == hadamard.times(64));
    CHECK(coordinates.estimate(step) == coordinates.gradient);
  }
  // Also where their count is not a power of two: the rows of the next one, 8.
  CHECK(LinearLoss(5, 1, with(Directions::hadamard, 8)).estimate(3) ==
        LinearLoss(5, 1, with(Directions::hadamard, 8)).times(8));
  CHECK(LinearLoss(5, 1, with(Directions::hadamard, 16)).estimate(3) ==
        LinearLoss(5, 1, with(Directions::hadamard, 16)).times(16));
}

TEST_CASE("a running index lets the samples of a batch complete one another's directions") {
  TrainerOptions options = with(Directions::hadamard, 16);
  options.hadamard_index = HadamardIndex::running;
  const LinearLoss running(16, 8, options);
  CHECK(running.estimate(0, 8) == running.times(128));
  CHECK(running.estimate(5, 16) == running.times(256));
  options.pairs = Pairs::antithetic;
  CHECK(LinearLoss(16, 8, options).estimate(1, 16) == running.times(256));
  options = with(Directions::hadamard, 16);
  CHECK(LinearLoss(16, 8, options).estimate(0, 8) != running.times(128));
}

TEST_CASE("the transform gives the explicit sum bit for bit, for any numbers of queries and weights") {
  RandomSource random(71);
  for (int i = 0; i < 60; ++i) {
    CAPTURE(i);
    TrainerOptions options = with(Directions::hadamard, random.pick<int32_t>({1, 2, 3, 7, 64, 65, 100, 128, 200}));
    options.seed = static_cast<uint32_t>(random.integer(1, 99));
    options.pairs = static_cast<Pairs>(options.queries % 2 == 0 && random.chance(2));
    options.hadamard_index = static_cast<HadamardIndex>(random.chance(2));
    const LinearLoss loss(random.integer(1, 40), random.integer(1, 30), options);
    const auto sample = static_cast<uint32_t>(random.integer(0, 60)), step = static_cast<uint32_t>(i);
    const int32_t bound = INT32_MAX / options.queries;
    std::vector<int32_t> differences;
    for (int32_t q = 0; q < options.queries; ++q) differences.push_back(random.integer(-bound, bound));
    Vector sums(loss.gradient.size()), expected(loss.gradient.size());
    loss.add(step, sample, differences, sums);
    std::vector<int8_t> direction(expected.size());
    for (size_t q = 0; q < differences.size(); ++q) {
      Direction(loss.at(step), loss.run->trainer().workspace(0), loss.layer(), {static_cast<uint32_t>(q), sample},
                Purpose::weight_signs)
          .next(portable_kernels(), loss.layer().weight_count, direction.data());
      for (size_t k = 0; k < expected.size(); ++k) expected[k] += int64_t{differences[q]} * direction[k];
    }
    CHECK(sums == expected);
  }
}

TEST_CASE("antithetic pairs remove what is even, exactly") {
  for (const Directions directions : {Directions::rademacher, Directions::hadamard}) {
    TrainerOptions options = with(directions, 12);
    options.pairs = Pairs::antithetic;
    const LinearLoss loss(9, 5, options);
    const Vector expected = loss.estimate(2);
    std::vector<int32_t> differences = loss.differences(2, 0);
    for (size_t q = 0; q < differences.size(); ++q) {  // an offset, and the same square both ways
      differences[q] += 12345 + differences[q] * differences[q];
    }
    Vector sums(expected.size());
    loss.add(2, 0, differences, sums);
    CHECK(sums == expected);
  }
}

TEST_CASE("with the mean of the other queries as baseline, Hadamard estimates have no bias") {
  // Over the shifts, each of which takes the gradient of one column in 16 away.
  const int32_t queries = 16, steps = 3200;
  const LinearLoss loss(4, 4, with(Directions::hadamard, queries));
  std::vector<double> mean(16, 0.0);
  for (uint32_t step = 0; step < steps; ++step) {
    std::vector<int32_t> differences = loss.differences(step, 0);
    int64_t sum = 0;
    for (const int32_t difference : differences) sum += difference;
    for (int32_t& difference : differences) difference = static_cast<int32_t>(16 * difference - sum);
    Vector sums(16);
    loss.add(step, 0, differences, sums);
    int32_t lost = 0;
    for (size_t i = 0; i < sums.size(); ++i) {
      mean[i] += static_cast<double>(sums[i]) / (16.0 * (queries - 1)) / steps;
      lost += loss.gradient[i] != 0 && sums[i] == 0;
    }
    CHECK(lost <= 1);
  }
  // A column is lost with probability 1/16: five standard deviations of the mean are 0.023 of it.
  for (size_t i = 0; i < mean.size(); ++i) {
    const auto exact = static_cast<double>(loss.gradient[i]);
    CHECK(std::abs(mean[i] - exact) <= 0.023 * std::abs(exact) + 1e-9);
  }
}
