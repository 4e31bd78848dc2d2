// Optimizer state: moments by their definition, and a trainer that goes on from them.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/base/arithmetic.hpp"
#include "core/zo/optimizer_state.hpp"
#include "reference/moments.hpp"
#include "tests/random_dag.hpp"
#include "tests/random_directions.hpp"
#include "tests/shuffled_executor.hpp"
#include "tests/simulated_kernels.hpp"
#include "tests/training_run.hpp"

using namespace pmt;
using namespace pmt::tests;

namespace {

struct Setting {
  Setting(RandomSource& random, Optimizer optimizer, bool weights) : image(random_dag(random, 6)) {
    REQUIRE(model.open(image.data(), image.size()).ok());
    samples = random_samples(random, model, 3);
    options.queries = 4;
    options.rounding = Rounding::stochastic;
    options.step = Step::normalized;
    options.rule = random_rule(random);
    options.sharing = static_cast<Sharing>(random.integer(0, 1));
    options.scope = static_cast<Scope>(random.integer(0, 1));
    options.optimizer = optimizer;
    options.train_weights = weights ? 1 : 0;
  }

  TrainingRun run(const Machine& machine = {}) const { return run_of(options, machine); }
  TrainingRun run_of(const TrainerOptions& with, const Machine& machine = {}) const {
    return TrainingRun(model, with, trainable_layers(model), samples.count(), machine);
  }
  size_t bytes_with(uint32_t weights) const {
    TrainerOptions with = options;
    with.train_weights = weights;
    return run_of(with).trainer().bytes_needed();
  }

  AlignedBytes image;
  Model model;
  Samples samples;
  TrainerOptions options;
};

// Calls check(setting, trial) for every kind of optimizer state.
template <typename Check>
void for_all_kinds(uint64_t seed, const Check& check) {
  RandomSource random(seed);
  for (int32_t kind = 0; kind < 6; ++kind) {
    CAPTURE(kind);
    check(Setting(random, static_cast<Optimizer>(kind % 3), kind < 3));
  }
}

void copy_parameters(const Trainer& from, const Trainer& to) {
  for (int32_t i = 0; i < from.layer_count(); ++i) {
    const Layer &source = from.layer(i), &target = to.layer(i);
    std::copy(source.weights, source.weights + source.weight_count, target.weights);
    std::copy(source.bias, source.bias + source.channels, target.bias);
  }
}

}  // namespace

TEST_CASE("a power is that of the standard library") {
  CHECK(power(0.5f, 0) == 1.0f);
  CHECK(power(0.5f, 10) == 0.0009765625f);
  CHECK(power(0.0f, 3) == 0.0f);
  CHECK(power(0.999f, 1 << 24) == 0.0f);
  for (const int32_t exponent : {1, 2, 3, 7, 100, 1001}) {
    CHECK(power(0.999f, exponent) == doctest::Approx(std::pow(static_cast<double>(0.999f), exponent)).epsilon(1e-4));
  }
}

TEST_CASE("moments are those of the whole series of gradients") {
  RandomSource random(60);
  for (const Optimizer optimizer : {Optimizer::momentum, Optimizer::adam}) {
    TrainerOptions options;
    options.optimizer = optimizer;
    options.momentum = 0.75f;
    options.adam_beta2 = 0.96875f;
    float first = 0.0f, second = 0.0f;
    std::vector<double> gradients;
    for (int32_t t = 0; t < 40; ++t) {
      const auto gradient = static_cast<float>(random.real(-2.0, 3.0));
      gradients.push_back(static_cast<double>(gradient));
      const Moments moments(options, {&first, &second, t});
      moments.add(0, gradient);
      const reference::Vector<double> series = xt::adapt(gradients, {gradients.size()});
      const double expected = optimizer == Optimizer::adam ? reference::adam_direction(series, 0.75, 0.96875)
                                                           : reference::momentum_direction(series, 0.75);
      CHECK(static_cast<double>(moments.direction(0)) == doctest::Approx(expected).epsilon(1e-4));
    }
  }
}

TEST_CASE("an overflow leaves no infinity behind") {
  TrainerOptions options;
  for (const Optimizer optimizer : {Optimizer::momentum, Optimizer::adam}) {
    options.optimizer = optimizer;
    float first = 0.0f, second = 0.0f;
    for (int32_t t = 0; t < 5; ++t) {
      const Moments moments(options, {&first, &second, t});
      moments.add(0, t == 0 ? 3e38f : 1.0f);
      CHECK(is_finite(first));
      CHECK(is_finite(second));
      CHECK(is_finite(moments.direction(0)));
    }
  }
}

TEST_CASE("training goes on from its optimizer state as if it had never stopped") {
  int32_t kept = 0;
  for_all_kinds(61, [&](const Setting& setting) {
    TrainingRun whole = setting.run(), stopped = setting.run(), resumed = setting.run();
    const SampleSource source = source_of(setting.samples);
    StepResult result = {};
    for (uint32_t step = 0; step < 4; ++step) {
      REQUIRE(whole.trainer().step(step, 0.9f, 3, source, &result).ok());
      Trainer& second = step < 2 ? stopped.trainer() : resumed.trainer();
      if (step == 2) {
        copy_parameters(stopped.trainer(), resumed.trainer());
        const OptimizerState from = stopped.trainer().optimizer_state(), to = resumed.trainer().optimizer_state();
        REQUIRE(from.count == to.count);
        std::copy(from.values, from.values + from.count, to.values);
        CHECK(second.optimizer_state().check().ok());
        kept += from.count > 0;
        if (from.count > 0) CHECK(from.values[0] == 2.0f);
      }
      REQUIRE(second.step(step, 0.9f, 3, source, &result).ok());
    }
    CHECK(resumed.parameters() == whole.parameters());
    CHECK(whole.trainer().steps_begun() == 4);
  });
  CHECK(kept == 4);
}

TEST_CASE("every kind of optimizer state gives the same bytes in any order, on any kernels") {
  int32_t learned = 0;
  for_all_kinds(62, [&](const Setting& setting) {
    const auto trained = [&](const Machine& machine) {
      TrainingRun run = setting.run(machine);
      const std::vector<int32_t> start = run.parameters();
      REQUIRE(run.train(setting.samples, 3, 0.9f).ok());
      learned += run.parameters() != start;
      return run.parameters();
    };
    const std::vector<int32_t> expected = trained({});
    ShuffledExecutor shuffled(5, 4);
    CHECK(trained(Machine(shuffled.executor())) == expected);
    for (const Kernels* kernels : tested_kernels()) {
      Machine machine;
      machine.kernels = kernels;
      machine.query_bytes = 3000;
      CHECK(trained(machine) == expected);
    }
  });
  CHECK(learned > 12);
}

TEST_CASE("an optimizer state takes its values' bytes, and biases alone take none for weights") {
  RandomSource random(63);
  const Setting plain(random, Optimizer::sgd, true);
  int64_t weights = 0, biases = 0, largest = 0;
  const TrainingRun run = plain.run();
  TrainingRun& base = const_cast<TrainingRun&>(run);
  for (int32_t i = 0; i < base.trainer().layer_count(); ++i) {
    weights += base.trainer().layer(i).weight_count;
    biases += base.trainer().layer(i).channels;
    largest = std::max<int64_t>(largest, base.trainer().layer(i).weight_count);
  }
  const auto rounded = [](int64_t bytes) { return static_cast<size_t>((bytes + 15) / 16 * 16); };
  TrainerOptions options = plain.options;
  options.optimizer = Optimizer::momentum;
  CHECK(plain.run_of(options).trainer().bytes_needed() ==
        base.trainer().bytes_needed() + rounded(4 * (1 + weights + biases)));
  options.optimizer = Optimizer::adam;
  CHECK(plain.run_of(options).trainer().bytes_needed() ==
        base.trainer().bytes_needed() + rounded(4 * (1 + 2 * (weights + biases))));
  options.train_weights = 0;
  CHECK(plain.run_of(options).trainer().optimizer_state().count == 1 + 2 * biases);
  CHECK(plain.bytes_with(0) + static_cast<size_t>(8 * largest) <= plain.bytes_with(1) + 16);
}

TEST_CASE("an optimizer state that no training can have left is refused") {
  RandomSource random(64);
  const Setting setting(random, Optimizer::adam, true);
  TrainingRun run = setting.run();
  const OptimizerState state = run.trainer().optimizer_state();
  CHECK(run.trainer().optimizer_state().check().ok());
  for (const float bad : {-1.0f, 2e7f, std::numeric_limits<float>::quiet_NaN()}) {
    state.values[0] = bad;
    CHECK(run.trainer().optimizer_state().check().code == Code::optimizer_state);
  }
  state.values[0] = 3.0f;
  state.values[state.count - 1] = std::numeric_limits<float>::infinity();
  CHECK(run.trainer().optimizer_state().check().code == Code::optimizer_state);
}
