#include <doctest/doctest.h>

#include <algorithm>
#include <memory>

#include "core/zo/estimated.hpp"
#include "core/zo/gradient.hpp"
#include "tests/random_network.hpp"
#include "tests/random_options.hpp"
#include "tests/reference_estimate.hpp"

using namespace pmt;
using namespace pmt::tests;

namespace {

int64_t free_nodes(const reference::Image& nodes, const OpRecord& op) {
  return std::count_if(nodes.begin(), nodes.end(),
                       [&](int8_t node) { return node > op.clamp_min && node < op.clamp_max; });
}

// A random network with some of its layers under training.
struct Setting {
  explicit Setting(RandomSource& random)
      : model(random_network(random, random.integer(1, 5),
                             random.pick<Head>({Head::fully_connected, Head::conv2d, Head::pool}))),
        options(random_options(random)) {
    std::vector<int32_t> layers;
    for (const int32_t layer : trainable_layers(model)) {
      if (!random.chance(3)) layers.push_back(layer);
    }
    if (layers.empty()) layers = trainable_layers(model);
    samples = random_samples(random, model, random.integer(1, 3));
    run = std::make_unique<TrainingRun>(model, options, layers, samples.count(), Machine{});
  }

  const Trainer& trainer() const { return run->trainer(); }

  // The main pass of a sample up to and including an op.
  void run_to(uint32_t sample, int32_t op) const {
    const Workspace& workspace = trainer().workspace(0);
    int8_t* input = workspace.tensor(trainer().plan(), Pass::main, model.header().input_tensor);
    std::copy(samples.images[sample].begin(), samples.images[sample].end(), input);
    forward(trainer().network(), trainer().plan(), workspace, 1, 0, op + 1);
  }

  OwnedModel model;
  TrainerOptions options;
  Samples samples;
  std::unique_ptr<TrainingRun> run;
};

struct CoreSums {
  CoreSums(const Layer& layer, bool with_weights)
      : weights(with_weights ? static_cast<size_t>(layer.weight_count) : 0),
        bias(static_cast<size_t>(layer.channels)) {}
  GradientSums view() { return {weights.empty() ? nullptr : weights.data(), bias.data()}; }
  std::vector<int64_t> weights, bias;
};

std::vector<int64_t> whole(const std::vector<double>& values) { return {values.begin(), values.end()}; }

}  // namespace

TEST_CASE("the loss of a query is that of the perturbed network run from its start") {
  RandomSource random(35);
  for (int i = 0; i < 60; ++i) {
    CAPTURE(i);
    const Setting setting(random);
    const uint32_t step = static_cast<uint32_t>(random.integer(0, 99));
    const ReferenceEstimate reference(setting.trainer(), setting.samples, step);
    StepContext context = setting.trainer().context();
    context.step = step;
    for (int32_t first = 0; first < context.layer_count; ++first) {
      const LayerRange ranges[] = {{first, first}, {first, context.layer_count - 1}};
      setting.run_to(0, context.layers[first].op);
      for (const LayerRange& perturbed : ranges) {
        for (uint32_t q = 0; q < 2; ++q) {
          int32_t loss = 0;
          const QueryBatch query = {static_cast<int32_t>(q), 1, {0, {setting.samples.labels[0]}}};
          const Workspace& workspace = setting.trainer().workspace(0);
          query_logits(context, workspace, perturbed, query, 0);
          REQUIRE(losses_of(context, query.sample, workspace.logits, 1, &loss).ok());
          CHECK(loss == reference.query_loss(perturbed, {q, 0}));
        }
      }
    }
  }
}

TEST_CASE("a layer's gradient sums are those of the definition") {
  RandomSource random(36);
  for (int i = 0; i < 60; ++i) {
    CAPTURE(i);
    const Setting setting(random);
    const ReferenceEstimate reference(setting.trainer(), setting.samples, 0);
    const StepContext& context = setting.trainer().context();
    const Workspace& workspace = setting.trainer().workspace(0);
    for (int32_t index = 0; index < context.layer_count; ++index) {
      const Layer& layer = setting.trainer().layer(index);
      std::vector<int32_t> differences;
      for (int32_t q = 0; q < layer.queries; ++q) differences.push_back(random.integer(-(1 << 22), 1 << 22));
      const std::vector<double> exact(differences.begin(), differences.end());
      CAPTURE(static_cast<int32_t>(layer.estimator));
      CoreSums sums(layer, setting.options.train_weights != 0);
      Sums expected;
      if (layer.estimator == Estimator::weight_perturbation) {
        add_weight_gradient(context, workspace, layer, 0, differences.data(), sums.view());
        expected = reference.weight_sums(index, 0, exact);
      } else if (perturbs_nodes(layer)) {
        setting.run_to(0, layer.op);
        DirectionSums directions(context, workspace, layer, 0, differences.data());
        directions.open(Purpose::node_signs);
        if (layer.estimator == Estimator::pooled_perturbation) {
          PooledGradient pooled(context, workspace, layer);
          pooled.count(main_rows(context, workspace, layer));
          pooled.share(directions);
        }
        NodeGradient gradient(context, workspace, layer, directions, sums.view());
        gradient.add(main_rows(context, workspace, layer));
        CHECK(gradient.free_nodes() == free_nodes(reference.clean_nodes(index, 0), setting.model.op(layer.op)));
        expected = reference.node_sums(index, 0, exact);
      } else {
        setting.run_to(0, layer.op - 1);
        head_gradient(context, workspace, {0, {setting.samples.labels[0]}}, workspace.head_gradient);
        add_head_product(context, workspace, layer, workspace.head_gradient, sums.view());
        expected = reference.head_sums(index, 0);
      }
      if (setting.options.train_weights != 0) CHECK(sums.weights == whole(expected.weights));
      CHECK(sums.bias == whole(expected.bias));
    }
  }
}

TEST_CASE("Trainer::estimate is the definition over the batch") {
  RandomSource random(37);
  int32_t seen[4] = {0, 0, 0, 0};
  for (int i = 0; i < 120; ++i) {
    CAPTURE(i);
    const Setting setting(random);
    const uint32_t step = static_cast<uint32_t>(random.integer(0, 99));
    const ReferenceEstimate reference(setting.trainer(), setting.samples, step);
    for (int32_t index = 0; index < setting.trainer().layer_count(); ++index) {
      const Layer& layer = setting.trainer().layer(index);
      CAPTURE(static_cast<int32_t>(layer.estimator));
      REQUIRE(setting.run->trainer().estimate(step, setting.samples.count(), source_of(setting.samples), index).ok());
      const GradientSums sums = setting.trainer().sums();
      const Sums expected = reference.sums(index);
      CHECK((sums.weights == nullptr) == (setting.options.train_weights == 0));
      if (sums.weights != nullptr) {
        CHECK(std::vector<int64_t>(sums.weights, sums.weights + layer.weight_count) == whole(expected.weights));
      }
      CHECK(std::vector<int64_t>(sums.bias, sums.bias + layer.channels) == whole(expected.bias));
      ++seen[static_cast<size_t>(layer.estimator)];
    }
  }
  for (const int32_t count : seen) CHECK(count > 10);
}
