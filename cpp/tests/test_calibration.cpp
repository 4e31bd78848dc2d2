#include <doctest/doctest.h>

#include <cstring>
#include <memory>

#include "core/train/calibration.hpp"
#include "core/zo/shrinkage.hpp"
#include "reference/calibration.hpp"
#include "reference/perturbation.hpp"
#include "tests/linear_case.hpp"
#include "tests/random_dag.hpp"
#include "tests/random_network.hpp"
#include "tests/reference_estimate.hpp"
#include "tests/shuffled_executor.hpp"
#include "tests/simulated_kernels.hpp"

using namespace pmt;
using namespace pmt::tests;

namespace {

TrainerOptions random_options(RandomSource& random) {
  TrainerOptions options;
  options.seed = static_cast<uint32_t>(random.integer(1, 1000));
  options.queries = random.integer(4, 12);
  options.mu_weight = random.integer(1, 6);
  options.mu_node = random.integer(1, 4);
  options.generator = static_cast<Generator>(random.integer(0, 1));
  options.baseline = static_cast<Baseline>(random.integer(0, 1));
  options.rule = static_cast<EstimatorRule>(random.integer(0, 4));
  options.regions = random.integer(1, 5);
  options.sharing = static_cast<Sharing>(random.integer(0, 1));
  options.train_bias = static_cast<uint32_t>(random.integer(0, 1));
  options.mu_per_channel = static_cast<uint32_t>(random.integer(0, 1));
  options.mu = static_cast<MuRule>(random.integer(0, 1));
  options.allocation = static_cast<Allocation>(random.integer(0, 1));
  if (!is_measured(options)) options.mu = MuRule::calibrated;
  options.probe_queries = random.integer(2, 6);
  return options;
}

struct Setting {
  explicit Setting(RandomSource& random)
      : image(random.chance(2) ? random_network(random, random.integer(1, 4), Head::fully_connected)
                               : random_dag(random, 5)),
        options(random_options(random)) {
    REQUIRE(model.open(image.data(), image.size()).ok());
    layers = trainable_layers(model);
    samples = random_samples(random, model, random.integer(1, 4));
  }

  std::unique_ptr<TrainingRun> run(const Machine& machine) const {
    return std::make_unique<TrainingRun>(model, options, layers, samples.count(), machine);
  }

  AlignedBytes image;
  Model model;
  TrainerOptions options;
  std::vector<int32_t> layers;
  Samples samples;
};

struct Calibrated {
  Calibrated(Trainer& trainer, const Samples& samples, uint32_t step)
      : measurements(static_cast<size_t>(trainer.layer_count())),
        demands(measurements.size()),
        settings(measurements.size()) {
    result = {measurements.data(), demands.data(), settings.data(), 0, 0};
    status = calibrate(trainer, step, samples.count(), source_of(samples), result);
  }

  bool operator==(const Calibrated& other) const {
    const auto same = [](const auto& a, const auto& b) {
      return std::memcmp(a.data(), b.data(), a.size() * sizeof(a[0])) == 0;
    };
    return same(measurements, other.measurements) && same(settings, other.settings);
  }

  std::vector<LayerMeasurement> measurements;
  std::vector<QueryDemand> demands;
  std::vector<LayerSettings> settings;
  CalibrationResult result = {};
  Status status;
};

reference::Vector<float> scales_of(const Model& model, const Layer& layer) {
  const float* scales = model.weight_scales(model.op(layer.op));
  const std::vector<float> all(scales, scales + layer.channels);
  return tensor_of<reference::Vector<float>>(all, {all.size()});
}

// Mean over the samples of the variance of the query losses, or that of their mean, by definition.
double expected_variance(const ReferenceEstimate& reference, const Trainer& trainer, int32_t index, int32_t samples,
                         bool shared) {
  const auto queries = static_cast<size_t>(trainer.layer(index).queries);
  reference::Vector<double> together = xt::zeros<double>({queries});
  double sum = 0.0;
  for (uint32_t n = 0; n < static_cast<uint32_t>(samples); ++n) {
    reference::Vector<double> losses = xt::zeros<double>({queries});
    for (size_t q = 0; q < queries; ++q) {
      losses(q) = reference.query_loss({index, index}, {static_cast<uint32_t>(q), n}) / 1048576.0;
    }
    sum += reference::variance(losses);
    together += losses;
  }
  return shared ? reference::variance(together / samples) : sum / samples;
}

}  // namespace

TEST_CASE("two variances give signal and noise") {
  const float squares[] = {1.0f, 16.0f};
  const auto line = [&](float first, float second) {
    const float variances[] = {first, second};
    return loss_variance(variances, squares);
  };
  CHECK(line(5.0f, 35.0f).signal == 2.0f);
  CHECK(line(5.0f, 35.0f).noise == 3.0f);
  CHECK(line(5.0f, 35.0f).at(4.0f) == 11.0f);
  CHECK(line(1.0f, 31.0f).signal == 2.0f);  // more than linear: no noise, not less than none
  CHECK(line(1.0f, 31.0f).noise == 0.0f);
  CHECK(line(5.0f, 4.0f).signal == 0.0f);
  CHECK(line(5.0f, 4.0f).noise == 5.0f);
}

TEST_CASE("mu is the smallest whose noise is at most half of its signal") {
  const int32_t mus[] = {1, 2, 4, 8};
  const float squares[] = {1.0f, 4.0f, 16.0f, 64.0f};
  const auto mu = [&](float signal, float noise) { return calibrated_mu({signal, noise}, mus, squares, 4); };
  CHECK(mu(1.0f, 0.0f) == 1);
  CHECK(mu(1.0f, 0.5f) == 1);
  CHECK(mu(1.0f, 0.51f) == 2);
  CHECK(mu(1.0f, 2.4f) == 4);  // rho(1) = 3.4, as measured on MCUNet's b1
  CHECK(mu(1.0f, 9.2f) == 8);  // 10.2: b4
  CHECK(mu(1.0f, 1000.0f) == 8);
  CHECK(mu(0.0f, 1.0f) == 8);
  CHECK(mu(0.0f, 0.0f) == 8);
}

TEST_CASE("errors, and the squares behind them, are those of the definition") {
  RandomSource random(73);
  int32_t dead = 0, biased = 0;
  for (int i = 0; i < 40; ++i) {
    CAPTURE(i);
    const Setting setting(random);
    const auto run = setting.run({});
    const Trainer& trainer = run->trainer();
    const ReferenceEstimate reference(trainer, setting.samples, 0);
    for (int32_t k = 0; k < trainer.layer_count(); ++k) {
      const Layer& layer = trainer.layer(k);
      const OpRecord& op = setting.model.op(layer.op);
      const reference::Vector<float> scales = scales_of(setting.model, layer);
      const int32_t mu = random.integer(1, 8);
      reference::Vector<int32_t> mus = mu * xt::ones<int32_t>({scales.size()});
      if (setting.options.mu_per_channel != 0) mus = reference::channel_mu(scales, mu);
      const double taps = static_cast<double>(layer.weight_count / layer.channels);
      CHECK(weight_error(setting.model, layer, mu, 0.25f) ==
            doctest::Approx(reference::weight_error(0.25, taps, mus, scales)).epsilon(1e-4));
      CHECK(node_error(setting.model, layer, mu, 0.25f, 1000.0f) ==
            doctest::Approx(reference::node_error(0.25, mu, setting.model.input_of(op).scale,
                                                  setting.model.output_of(op).scale, 1000.0)));
      int8_t* input = trainer.workspace(0).tensor(trainer.plan(), Pass::main, setting.model.header().input_tensor);
      std::copy(setting.samples.images[0].begin(), setting.samples.images[0].end(), input);
      forward(trainer.network(), trainer.plan(), trainer.workspace(0), 1, 0, layer.op + 1);
      const int64_t squares = free_input_squares(trainer.context(), trainer.workspace(0), layer);
      CHECK(static_cast<double>(squares) == reference.free_input_squares(k, 0));
      const Layer pooled = pooled_layer(setting.model, layer, random.integer(1, 5));
      std::vector<int32_t> sums(static_cast<size_t>(patch_taps(layer)));
      const LayerRows rows = main_rows(trainer.context(), trainer.workspace(0), layer);
      const RegionInputs inputs = region_inputs(trainer.context(), pooled, rows, sums.data());
      const reference::RegionInputs expected = reference.region_inputs(k, 0, regions_of(setting.model, pooled));
      CHECK(inputs.mean_squares == doctest::Approx(expected.mean_squares).epsilon(1e-5));
      CHECK(inputs.columns == static_cast<float>(expected.columns));
      LayerMeasurement measured = {};
      measured.input_squares = static_cast<float>(squares);
      measured.nodes = static_cast<float>(free_nodes(trainer.context(), layer, rows));
      measured.regions[1] = inputs;
      if (inputs.columns > 0.0f) {
        const double bias =
            reference::pooled_bias(7.0, 5.0, setting.model.input_of(op).scale, setting.model.output_of(op).scale,
                                   measured.nodes, static_cast<double>(squares), expected);
        CHECK(pooled_bias(setting.model, layer, 7.0f, 5.0f, measured, 1) ==
              doctest::Approx(bias).epsilon(1e-3).scale(1e-3));
        biased += bias > 0.0;
      } else {
        CHECK(pooled_bias(setting.model, layer, 7.0f, 5.0f, measured, 1) == 0.0f);
      }
      dead += xt::amin(scales)() < 1e-6f;
    }
  }
  CHECK(dead > 5);
  CHECK(biased > 20);
}

TEST_CASE("a probe is the variance of the losses of its queries, and changes nothing") {
  RandomSource random(74);
  for (int i = 0; i < 25; ++i) {
    CAPTURE(i);
    const Setting setting(random);
    const auto run = setting.run({});
    Trainer& trainer = run->trainer();
    const std::vector<LayerSettings> own = random_settings(random, setting.model, setting.options, setting.layers);
    std::vector<LayerSettings> probed = own;
    for (LayerSettings& one : probed) {
      one.queries = setting.options.probe_queries;
      const int32_t regions = region_choices(setting.options);
      if (one.estimator != Estimator::pooled_perturbation) continue;
      if (regions == 0) one.estimator = Estimator::node_perturbation;
      if (regions > 0) one.regions = region_choice(setting.options, random.integer(0, regions - 1));
    }
    std::vector<LayerMeasurement> measured(probed.size());
    REQUIRE(
        trainer.probe()
            .measure_losses(probed.data(), 5, setting.samples.count(), source_of(setting.samples), 1, measured.data())
            .ok());

    const TrainingRun other(setting.model, setting.options, setting.layers, setting.samples.count(), {}, probed);
    const Trainer& same = const_cast<TrainingRun&>(other).trainer();
    const ReferenceEstimate reference(same, setting.samples, 5u | 0x80000000u);
    for (int32_t k = 0; k < trainer.layer_count(); ++k) {
      const Estimator estimator = same.layer(k).estimator;
      if (estimator == Estimator::closed_form) continue;
      const bool shared = setting.options.sharing == Sharing::batch && estimator == Estimator::weight_perturbation;
      const double expected = expected_variance(reference, same, k, setting.samples.count(), shared);
      const int32_t candidate = candidate_of(setting.options, estimator, probed[static_cast<size_t>(k)].regions);
      const double found = measured[static_cast<size_t>(k)].variance[candidate][1];
      CHECK(found == doctest::Approx(expected).epsilon(1e-3).scale(1e-6));
    }

    const auto fresh = setting.run({});
    REQUIRE(run->train(setting.samples, 2, 0.7f).ok());
    REQUIRE(fresh->train(setting.samples, 2, 0.7f).ok());
    CHECK(run->parameters() == fresh->parameters());
  }
}

TEST_CASE("a calibration is the same bytes in any order, on any kernels, with any queries at once") {
  RandomSource random(75);
  for (int i = 0; i < 20; ++i) {
    CAPTURE(i);
    const Setting setting(random);
    const auto sequential = setting.run({});
    const Calibrated expected(sequential->trainer(), setting.samples, 3);
    REQUIRE(expected.status.ok());
    for (const Kernels* kernels : tested_kernels()) {
      ShuffledExecutor shuffled(random.bits(), random.integer(1, 4));
      Machine machine(shuffled.executor());
      machine.kernels = kernels;
      machine.query_bytes = random.pick<int32_t>({0, 3000, 1 << 20});
      const auto run = setting.run(machine);
      const Calibrated found(run->trainer(), setting.samples, 3);
      CHECK(found == expected);
      CHECK(found.result.macs == expected.result.macs);
    }
  }
}

TEST_CASE("a calibration gives settings that open, under the budget of uniform queries") {
  RandomSource random(76);
  int32_t different = 0, nodes = 0, weights = 0, pooled = 0;
  for (int i = 0; i < 60; ++i) {
    CAPTURE(i);
    const Setting setting(random);
    const auto run = setting.run({});
    const Trainer& trainer = run->trainer();
    const Calibrated found(run->trainer(), setting.samples, 3);
    REQUIRE(found.status.ok());
    int64_t spent = 0, budget = 0;
    for (size_t k = 0; k < found.settings.size(); ++k) {
      const LayerSettings& one = found.settings[k];
      const LayerSettings given =
          default_settings(setting.model, trainer.layer(static_cast<int32_t>(k)).op, setting.options);
      if (setting.options.rule != EstimatorRule::measured) CHECK(one.estimator == given.estimator);
      if (setting.options.mu == MuRule::fixed) {
        CHECK(one.mu_weight == given.mu_weight);
        CHECK(one.mu_node == given.mu_node);
      }
      if (setting.options.allocation == Allocation::uniform) CHECK(one.queries == given.queries);
      different += one.queries != given.queries;
      nodes += one.estimator == Estimator::node_perturbation;
      weights += one.estimator == Estimator::weight_perturbation;
      pooled += one.estimator == Estimator::pooled_perturbation && setting.options.rule == EstimatorRule::measured;
      spent += found.demands[k].macs * one.queries;
      budget += found.demands[k].macs * setting.options.queries;
    }
    CHECK(spent <= budget);
    CHECK(found.result.macs > 0);
    const auto next = std::make_unique<TrainingRun>(setting.model, setting.options, setting.layers,
                                                    setting.samples.count(), Machine{}, found.settings);
    CHECK(next->train(setting.samples, 1, 0.5f).ok());
  }
  CHECK(different > 20);
  CHECK(nodes > 10);
  CHECK(weights > 10);
  CHECK(pooled > 5);
}

TEST_CASE("probes are refused without the memory for them, model-wise, or with too many queries") {
  RandomSource random(77);
  Setting setting(random);
  const auto code = [&](const TrainerOptions& options, int32_t queries) {
    TrainingRun run(setting.model, options, setting.layers, setting.samples.count(), {});
    std::vector<LayerSettings> settings;
    for (const int32_t op : setting.layers) {
      settings.push_back(default_settings(setting.model, op, options));
      settings.back().queries = queries;
    }
    std::vector<LayerMeasurement> measured(settings.size());
    return run.trainer()
        .probe()
        .measure_losses(settings.data(), 0, setting.samples.count(), source_of(setting.samples), 0, measured.data())
        .code;
  };
  TrainerOptions options;
  CHECK(code(options, 16) == Code::arena_too_small);
  TrainingRun unmeasured(setting.model, options, setting.layers, setting.samples.count(), {});
  CHECK(Calibrated(unmeasured.trainer(), setting.samples, 0).status.code == Code::arena_too_small);
  options.mu = MuRule::calibrated;
  CHECK(code(options, 16) == Code::ok);
  CHECK(code(options, 17) == Code::option_probe);
  options.rule = EstimatorRule::pooled;
  CHECK(code(options, 16) == Code::ok);
  CHECK(code(options, 1) == Code::option_probe);
}
