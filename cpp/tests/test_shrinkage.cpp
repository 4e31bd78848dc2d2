// Measured gradient-norm scaling against its definition, and the definition against what it promises.
#include <doctest/doctest.h>

#include <algorithm>

#include "core/zo/shrinkage.hpp"
#include "core/zo/sparsity.hpp"
#include "core/zo/walsh_hadamard.hpp"
#include "reference/hadamard.hpp"
#include "reference/shrinkage.hpp"
#include "tests/linear_case.hpp"
#include "tests/random_directions.hpp"
#include "tests/random_network.hpp"
#include "tests/reference_estimate.hpp"
#include "tests/training_run.hpp"

using namespace pmt;
using namespace pmt::tests;

namespace {

struct Setting {
  explicit Setting(RandomSource& random) : image(random_network(random, random.integer(1, 4), Head::fully_connected)) {
    REQUIRE(model.open(image.data(), image.size()).ok());
    samples = random_samples(random, model, random.integer(1, 3));
    options.queries = random.integer(2, 6);
    options.baseline = static_cast<Baseline>(random.integer(0, 1));
    options.rule = random_rule(random);
    options.sharing = static_cast<Sharing>(random.integer(0, 1));
    options.train_weights = random.chance(3) ? 0 : 1;
    random_directions(random, options);
    if (options.directions == Directions::coordinate) options.directions = Directions::rademacher;
    options.sparsity = options.train_weights != 0 ? random.pick<float>({0.0f, 0.5f}) : 0.0f;
    options.gradient_norm_scaling = GradientNormScaling::measured;
    options.shrinkage_memory = 0.5f;
  }

  AlignedBytes image;
  Model model;
  Samples samples;
  TrainerOptions options;
};

bool is_live(const Model& model, const Layer& layer, size_t channel) {
  return !channel_is_dead(model.weight_scales(model.op(layer.op))[channel]);
}

// The sums of the parameters that are trained in the live channels.
reference::Vector<double> live_sums(const Setting& setting, const Layer& layer, const Sums& sums) {
  std::vector<double> live;
  const OpRecord& op = setting.model.op(layer.op);
  for (size_t c = 0; c < sums.bias.size(); ++c) {
    if (!is_live(setting.model, layer, c)) continue;
    if (setting.options.train_weights == 0) {
      live.push_back(sums.bias[c]);
      continue;
    }
    const ChannelWeights at = channel_weights(setting.model, op, static_cast<int32_t>(c));
    for (int32_t k = 0; k < at.count; ++k) live.push_back(sums.weights[static_cast<size_t>(at.first + k * at.stride)]);
  }
  return tensor_of<reference::Vector<double>>(live, {live.size()});
}

// The amount that node gradients of 1 add to the squares of the live sums for one sample, over all the nodes
// whose gradient is not lost at a clamp.
double node_freedom(const Setting& setting, const ReferenceEstimate& reference, const Layer& layer, int32_t index,
                    uint32_t sample) {
  if (setting.options.train_weights != 0) return reference.free_input_squares(index, sample);
  const OpRecord& op = setting.model.op(layer.op);
  const reference::Image& nodes = reference.clean_nodes(index, sample);
  double free = 0.0;
  for (size_t i = 0; i < nodes.size(); ++i) {
    const bool live = is_live(setting.model, layer, i % static_cast<size_t>(layer.channels));
    free += live && nodes.flat(i) > op.clamp_min && nodes.flat(i) < op.clamp_max ? 1.0 : 0.0;
  }
  return free;
}

// The share of independent directions' noise that a layer's directions have: the mean square of the
// products of two coordinates over them, which is their number for independent ones.
double hadamard_correlation(size_t directions, size_t columns) {
  const size_t order = reference::hadamard_order(columns);
  const xt::xtensor<int8_t, 2> matrix = reference::hadamard_matrix(order);
  double squares = 0.0;
  for (size_t i = 0; i < columns; ++i) {
    for (size_t j = 0; j < columns; ++j) {
      double product = 0.0;
      for (size_t row = 0; row < directions; ++row) product += matrix(row % order, i) * matrix(row % order, j);
      if (i != j) squares += product * product;
    }
  }
  return columns < 2 ? 0.0 : squares / static_cast<double>(directions * columns * (columns - 1));
}

double direction_noise(const Setting& setting, const Layer& layer) {
  if (setting.options.directions != Directions::hadamard) return 1.0;
  const bool node = perturbs_nodes(layer);
  const int32_t weights = setting.options.train_weights != 0 ? layer.weight_count : 0;
  const int32_t columns = node ? node_columns(layer) : weights + layer.channels;
  const int32_t directions =
      setting.options.pairs == Pairs::antithetic ? setting.options.queries / 2 : setting.options.queries;
  return hadamard_correlation(static_cast<size_t>(directions), static_cast<size_t>(columns));
}

// Weights of the live channels that are active, as many as are expected; or those channels' biases.
int32_t live_elements(const Setting& setting, const Layer& layer, size_t live) {
  if (setting.options.sparsity == 0.0f) return static_cast<int32_t>(live);
  return static_cast<int32_t>(static_cast<int64_t>(active_weights(setting.options, layer)) *
                              static_cast<int64_t>(live) / layer.weight_count);
}

// Differences [sample][direction] and the freedom of each sample, as the definition wants them.
struct Measured {
  xt::xtensor<double, 2> differences;
  reference::Vector<double> freedom;
};

Measured measure(const Setting& setting, const ReferenceEstimate& reference, const Layer& layer, int32_t index) {
  const auto samples = static_cast<size_t>(setting.samples.count());
  const bool pairs = setting.options.pairs == Pairs::antithetic;
  const auto queries = static_cast<size_t>(setting.options.queries);
  Measured all = {xt::zeros<double>({samples, queries}), xt::zeros<double>({samples})};
  const int32_t elements = live_elements(setting, layer, live_sums(setting, layer, reference.sums(index)).size());
  const double share = setting.options.train_weights == 0 ? 1.0 : active_share(setting.options, layer);
  const double noise = direction_noise(setting, layer);
  for (uint32_t n = 0; n < samples; ++n) {
    const std::vector<double> own = reference.differences(index, n);
    std::copy(own.begin(), own.end(), xt::row(all.differences, static_cast<std::ptrdiff_t>(n)).begin());
    if (layer.estimator == Estimator::pooled_perturbation) {  // sums are 64 times the gradient's
      all.freedom(n) = noise * share * 64 * 64 * reference.pooled_factor_squares(index, n);
      continue;
    }
    all.freedom(n) = noise * (layer.estimator == Estimator::node_perturbation
                                  ? share * node_freedom(setting, reference, layer, index, n)
                                  : elements - 1.0);
  }
  const bool shared = setting.options.sharing == Sharing::batch && layer.estimator == Estimator::weight_perturbation;
  if (shared) {
    Measured mean = {xt::zeros<double>({size_t{1}, queries}), xt::view(all.freedom, xt::range(0, 1))};
    xt::row(mean.differences, 0) = xt::round(xt::sum(all.differences, {0}) / static_cast<double>(samples));
    all = mean;
  }
  if (!pairs) return all;
  const xt::xtensor<double, 2> forwards = xt::view(all.differences, xt::all(), xt::range(0, queries, 2));
  const xt::xtensor<double, 2> backwards = xt::view(all.differences, xt::all(), xt::range(1, queries, 2));
  return {forwards - backwards, all.freedom};
}

}  // namespace

TEST_CASE("the share of noise is the definition's, averaged over the steps with exponential weights") {
  RandomSource random(65);
  int32_t compared[4] = {0, 0, 0, 0};
  for (int i = 0; i < 80; ++i) {
    CAPTURE(i);
    const Setting setting(random);
    TrainingRun run(setting.model, setting.options, trainable_layers(setting.model), setting.samples.count(), {});
    Trainer& trainer = run.trainer();
    std::vector<double> shares(static_cast<size_t>(trainer.layer_count()), 0.0);
    for (uint32_t step = 0; step < 2; ++step) {
      const ReferenceEstimate reference(trainer, setting.samples, step);
      for (int32_t k = 0; k < trainer.layer_count(); ++k) {
        const Layer& layer = trainer.layer(k);
        if (layer.estimator == Estimator::closed_form) continue;
        const Measured measured = measure(setting, reference, layer, k);
        const reference::Vector<double> sums = live_sums(setting, layer, reference.sums(k));
        const bool nothing = xt::sum(xt::square(sums))() == 0.0;
        const double now =
            nothing ? 1.0 : std::min(2.0, reference::noise_share(measured.differences, measured.freedom, sums));
        double& share = shares[static_cast<size_t>(k)];
        share = step == 0 ? now : 0.5 * share + 0.5 * now;
        ++compared[static_cast<size_t>(layer.estimator)];
      }
      StepResult result = {};  // nothing moves, so that the next step's definition sees these weights
      REQUIRE(trainer.step(step, 0.0f, setting.samples.count(), source_of(setting.samples), &result).ok());
      const float* values = trainer.optimizer_state().values + 1;
      for (int32_t k = 0; k < trainer.layer_count(); ++k) {
        CHECK(static_cast<double>(values[k]) == doctest::Approx(shares[static_cast<size_t>(k)]).epsilon(1e-4));
      }
    }
  }
  CHECK(compared[0] > 40);
  CHECK(compared[1] > 40);
  CHECK(compared[static_cast<size_t>(Estimator::pooled_perturbation)] > 40);
}

TEST_CASE("columns of Hadamard rows are correlated as the matrix says") {
  for (const uint32_t columns : {1u, 2u, 3u, 8u, 10u, 24u, 64u, 100u}) {
    for (const uint32_t rows : {1u, 2u, 3u, 6u, 8u, 13u, 32u, 50u, 128u, 200u}) {
      CAPTURE(columns);
      CAPTURE(rows);
      CHECK(static_cast<double>(column_correlation(rows, columns)) ==
            doctest::Approx(hadamard_correlation(rows, columns)).epsilon(1e-6));
    }
  }
  CHECK(column_correlation(16, 64) == doctest::Approx((64.0 - 16.0) / 63.0));  // (d - Q) / (d - 1)
  CHECK(column_correlation(64, 64) == 0.0f);
  CHECK(column_correlation(64, 50) == 0.0f);
}

namespace {

// Mean squared norm of the sums of a linear loss, that of their noise, and what is expected of it.
struct LinearLoss {
  double norm = 0.0, noise = 0.0, expected = 0.0;

  LinearLoss(RandomSource& random, size_t elements, size_t queries, Directions directions) {
    constexpr size_t trials = 4000;
    const size_t order = reference::hadamard_order(elements);
    const xt::xtensor<int8_t, 2> matrix = reference::hadamard_matrix(order);
    reference::Vector<double> gradient = xt::zeros<double>({elements});
    for (double& value : gradient) value = random.real(-1.0, 1.0);
    const double share =
        directions == Directions::hadamard
            ? static_cast<double>(column_correlation(static_cast<uint32_t>(queries), static_cast<uint32_t>(elements)))
            : 1.0;
    const reference::Vector<double> freedom = {share * (static_cast<double>(elements) - 1.0)};
    for (size_t t = 0; t < trials; ++t) {
      reference::Vector<double> sums = xt::zeros<double>({elements});
      xt::xtensor<double, 2> differences = xt::zeros<double>({size_t{1}, queries});
      reference::Vector<int8_t> signs = xt::zeros<int8_t>({elements});
      const auto shift = static_cast<size_t>(random.integer(0, static_cast<int32_t>(order) - 1));
      for (size_t q = 0; q < queries; ++q) {
        if (q == 0 || directions == Directions::rademacher) {
          for (int8_t& sign : signs) sign = random.chance(2) ? 1 : -1;
        }
        const reference::Vector<double> direction =
            directions == Directions::hadamard ? reference::hadamard_direction(signs, matrix, q % order, 0, shift)
                                               : signs;
        differences(0, q) = xt::sum(direction * gradient)();
        sums += differences(0, q) * direction;
      }
      const double squares = xt::sum(xt::square(sums))();
      norm += squares / trials;
      noise += xt::sum(xt::square(sums - static_cast<double>(queries) * gradient))() / trials;
      expected += reference::noise_share(differences, freedom, sums) * squares / trials;
    }
  }
};

}  // namespace

TEST_CASE("on a linear loss the noise is what is expected") {
  RandomSource random(66);
  const LinearLoss independent(random, 24, 6, Directions::rademacher);
  CHECK(independent.expected == doctest::Approx(independent.noise).epsilon(0.03));
  // So the factor is that of independent queries, Q / (Q + d - 1).
  CHECK(1.0 - independent.noise / independent.norm == doctest::Approx(6.0 / (6.0 + 24.0 - 1.0)).epsilon(0.1));
  for (const size_t elements : {16, 24, 40}) {
    for (const size_t queries : {4, 6, 16, 24}) {
      CAPTURE(elements);
      CAPTURE(queries);
      const LinearLoss orthogonal(random, elements, queries, Directions::hadamard);
      CHECK(orthogonal.expected == doctest::Approx(orthogonal.noise).epsilon(0.05));
    }
  }
}
