// Measured gradient-norm scaling against its definition, and the definition against what it promises.
#include <doctest/doctest.h>

#include <algorithm>

#include "core/shrinkage.hpp"
#include "reference/shrinkage.hpp"
#include "tests/linear_case.hpp"
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
    options.rule = static_cast<EstimatorRule>(random.integer(0, 2));
    options.sharing = static_cast<Sharing>(random.integer(0, 1));
    options.train_weights = random.chance(3) ? 0 : 1;
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

// What is trained in the live channels.
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

// Of one sample: what a node gradient of 1 adds to the squares of the live sums, over all the nodes whose
// gradient is not lost at a clamp.
double node_freedom(const Setting& setting, const ReferenceEstimate& reference, const Layer& layer, int32_t index,
                    uint32_t sample) {
  const OpRecord& op = setting.model.op(layer.op);
  const reference::Image& nodes = reference.clean_nodes(index, sample);
  double freedom = 0.0;
  for (size_t i = 0; i < nodes.size(); ++i) {
    if (nodes.flat(i) <= op.clamp_min || nodes.flat(i) >= op.clamp_max) continue;
    const reference::Vector<double> sums = live_sums(setting, layer, reference.node_unit(index, sample, i));
    freedom += xt::sum(xt::square(sums))();
  }
  return freedom;
}

// Differences [sample][query] and the freedom of each sample, as the definition wants them.
struct Measured {
  xt::xtensor<double, 2> differences;
  reference::Vector<double> freedom;
};

Measured measure(const Setting& setting, const ReferenceEstimate& reference, const Layer& layer, int32_t index) {
  const auto samples = static_cast<size_t>(setting.samples.count());
  const auto queries = static_cast<size_t>(setting.options.queries);
  Measured all = {xt::zeros<double>({samples, queries}), xt::zeros<double>({samples})};
  const size_t elements = live_sums(setting, layer, reference.sums(index)).size();
  for (uint32_t n = 0; n < samples; ++n) {
    const std::vector<double> own = reference.differences(index, n);
    std::copy(own.begin(), own.end(), xt::row(all.differences, static_cast<std::ptrdiff_t>(n)).begin());
    all.freedom(n) = layer.estimator == Estimator::node_perturbation ? node_freedom(setting, reference, layer, index, n)
                                                                     : static_cast<double>(elements) - 1.0;
  }
  const bool shared = setting.options.sharing == Sharing::batch && layer.estimator == Estimator::weight_perturbation;
  if (!shared) return all;
  Measured mean = {xt::zeros<double>({size_t{1}, queries}), xt::view(all.freedom, xt::range(0, 1))};
  xt::row(mean.differences, 0) = xt::round(xt::sum(all.differences, {0}) / static_cast<double>(samples));
  return mean;
}

}  // namespace

TEST_CASE("the share of noise is the definition's, and fades from step to step") {
  RandomSource random(65);
  int32_t compared[2] = {0, 0};
  for (int i = 0; i < 40; ++i) {
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
      const float* values = trainer.memories().values + 1;
      for (int32_t k = 0; k < trainer.layer_count(); ++k) {
        CHECK(static_cast<double>(values[k]) == doctest::Approx(shares[static_cast<size_t>(k)]).epsilon(1e-4));
      }
    }
  }
  CHECK(compared[0] > 40);
  CHECK(compared[1] > 40);
}

TEST_CASE("on a linear loss the expected noise is the squared norm less that of the gradient") {
  RandomSource random(66);
  constexpr size_t elements = 24, queries = 6, trials = 4000;
  reference::Vector<double> gradient = xt::zeros<double>({elements});
  for (double& value : gradient) value = random.real(-1.0, 1.0);
  const double signal = xt::sum(xt::square(gradient))() * queries * queries;
  double norm = 0.0, noise = 0.0;
  for (size_t t = 0; t < trials; ++t) {
    reference::Vector<double> sums = xt::zeros<double>({elements});
    xt::xtensor<double, 2> differences = xt::zeros<double>({size_t{1}, queries});
    for (size_t q = 0; q < queries; ++q) {
      reference::Vector<double> signs = xt::zeros<double>({elements});
      for (double& sign : signs) sign = random.chance(2) ? 1.0 : -1.0;
      differences(0, q) = xt::sum(signs * gradient)();
      sums += differences(0, q) * signs;
    }
    const double squares = xt::sum(xt::square(sums))();
    const reference::Vector<double> freedom = {static_cast<double>(elements) - 1.0};
    norm += squares / trials;
    noise += reference::noise_share(differences, freedom, sums) * squares / trials;
  }
  CHECK(noise == doctest::Approx(norm - signal).epsilon(0.03));
  // Which makes the factor that of independent queries, Q / (Q + d - 1).
  CHECK(1.0 - noise / norm == doctest::Approx(queries / (queries + elements - 1.0)).epsilon(0.1));
}
