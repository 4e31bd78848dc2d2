// Directions against theory: on a linear function the squares of an estimate's norm and error are those of the
// theory.
#include <doctest/doctest.h>

#include <cmath>
#include <vector>

#include "core/zo/direction.hpp"
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
      Direction(context, layer(), {static_cast<uint32_t>(q), sample}, Purpose::weight_signs)
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

  std::unique_ptr<AlignedBytes> image;
  Model model;
  TrainerOptions options;
  std::unique_ptr<TrainingRun> run;
  Vector gradient;
  double squared_norm = 0.0;
};

TrainerOptions with(int32_t queries) {
  TrainerOptions options;
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
  const LinearLoss loss(8, 8, with(16));
  check_norms(norms(loss, 16, 2000), (16 + 64 - 1) / 16.0, 63 / 16.0);
}

TEST_CASE("antithetic pairs: squared error (2d - 2) / Q of random signs") {
  TrainerOptions options = with(16);
  options.pairs = Pairs::antithetic;
  check_norms(norms(LinearLoss(8, 8, options), 16, 2000), 1.0 + 126 / 16.0, 126 / 16.0);
}

TEST_CASE("antithetic pairs remove what is even, exactly") {
  TrainerOptions options = with(12);
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
