// Directions against theory: on a linear function the squares of an estimate's norm and error are those of the
// theory.
#include <doctest/doctest.h>

#include <cmath>
#include <vector>

#include "core/zo/direction.hpp"
#include "core/zo/gradient.hpp"
#include "reference/ops.hpp"
#include "reference/training_step.hpp"
#include "tests/linear_case.hpp"
#include "tests/random_network.hpp"
#include "tests/random_source.hpp"
#include "tests/training_run.hpp"

using namespace pmt;
using namespace pmt::tests;

namespace {

using Vector = std::vector<int64_t>;

// One fully connected layer: inputs * outputs weights, and no biases under training but where they are perturbed apart.
struct LinearLoss {
  LinearLoss(int32_t inputs, int32_t outputs, TrainerOptions with) : options(with) {
    RandomSource random(70);
    ImageBuilder builder({{1, 1, inputs}, {1, 1, outputs}});
    builder.add_op(plain_op(OpKind::fully_connected, 0, 1), random_linear_data(random, outputs, inputs));
    model.take(builder.build());
    options.rule = EstimatorRule::weight;
    options.train_bias = options.separate_biases;
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

  OwnedModel model;
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

namespace {

constexpr Window node_window = {3, 3, 1, 1, 0, 0};

// A convolution under training, some of whose nodes stand at a clamp, and a loss that is linear in its nodes.
struct LinearNodeLoss {
  explicit LinearNodeLoss(int32_t queries) {
    RandomSource random(71);
    ImageBuilder builder({{6, 5, 3, 0.05f, 4}, {4, 3, 6}, {1, 1, 5}});
    OpRecord op = window_op(OpKind::conv2d, 0, 1, node_window, 0, 0);
    op.clamp_min = -30;
    op.clamp_max = 45;
    builder.add_op(op, random_linear_data(random, 6, 27));
    builder.add_op(plain_op(OpKind::fully_connected, 1, 2), random_linear_data(random, 5, 72));
    model.take(builder.build());
    options.queries = queries;
    options.rule = EstimatorRule::node;
    run = std::make_unique<TrainingRun>(model, options, std::vector<int32_t>{0}, 1, Machine{});
    const std::vector<int8_t> values = random_samples(random, model, 1).images[0];
    input = image_of(values, {6, 5, 3});
    const Trainer& trainer = run->trainer();
    const Workspace& workspace = trainer.workspace(0);
    std::copy(values.begin(), values.end(), workspace.tensor(trainer.plan(), Pass::main, 0));
    forward(trainer.network(), trainer.plan(), workspace, 1, 0, 1);
    const int8_t* output = workspace.tensor(trainer.plan(), Pass::main, 1);
    nodes = image_of(output, {4, 3, 6});
    slopes = xt::zeros<double>({size_t{4}, size_t{3}, size_t{6}});
    for (double& slope : slopes) slope = random.integer(-9, 9);
    const auto is_free = xt::cast<int32_t>(nodes) > op.clamp_min && xt::cast<int32_t>(nodes) < op.clamp_max;
    free = xt::where(is_free, 1.0, 0.0);
    gradient = reference::conv2d_gradient(slopes * free, input, 4, node_window);
  }

  // What a query changes the loss by.
  int32_t difference(const StepContext& context, const Layer& layer, uint32_t query) const {
    std::vector<int8_t> signs(nodes.size());
    NodeSigns(context, run->trainer().workspace(0), layer, {query, 0})
        .next(portable_kernels(), layer.node_count, signs.data());
    const OpRecord& op = model.op(0);
    const auto clean = tensor_of<reference::Vector<int8_t>>(values_of(nodes), {nodes.size()});
    const auto moves = tensor_of<reference::Vector<int8_t>>(signs, {signs.size()});
    const reference::Vector<int8_t> moved =
        reference::perturb_free(clean, moves, layer.mu_node, op.clamp_min, op.clamp_max);
    double change = 0.0;
    for (size_t i = 0; i < moved.size(); ++i) change += slopes.flat(i) * (moved(i) - clean(i));
    return static_cast<int32_t>(change);
  }

  // Queries times the estimate of the weights' gradient.
  Vector estimate(uint32_t step) const {
    const Trainer& trainer = run->trainer();
    const Layer& layer = trainer.layer(0);
    StepContext context = trainer.context();
    context.step = step;
    std::vector<int32_t> differences;
    for (int32_t q = 0; q < layer.queries; ++q) {
      differences.push_back(difference(context, layer, static_cast<uint32_t>(q)));
    }
    Vector weights(gradient.size()), bias(static_cast<size_t>(layer.channels));
    DirectionSums directions(context, trainer.workspace(0), layer, 0, differences.data());
    directions.open(Purpose::node_signs);
    NodeGradient(context, trainer.workspace(0), layer, directions, {weights.data(), bias.data()})
        .add(main_rows(context, trainer.workspace(0), layer));
    return weights;
  }

  // |z|^2 |B|^2 + |g|^2 - 2 sum_j z_j^2 |B_j|^2, z the free nodes' slopes and B_j the patch of node j.
  double squared_error() const {
    double slope_squares = 0.0, patch_squares = 0.0, diagonal = 0.0;
    for (size_t y = 0; y < nodes.shape(0); ++y) {
      for (size_t x = 0; x < nodes.shape(1); ++x) {
        const auto patch = reference::patch(input, 4, node_window, static_cast<int32_t>(y), static_cast<int32_t>(x));
        const double norm = xt::sum(xt::square(xt::cast<double>(patch)))();
        for (size_t c = 0; c < nodes.shape(2); ++c) {
          const double square = free(y, x, c) * slopes(y, x, c) * slopes(y, x, c);
          slope_squares += square;
          patch_squares += free(y, x, c) * norm;
          diagonal += square * norm;
        }
      }
    }
    return slope_squares * patch_squares + xt::sum(xt::square(gradient))() - 2.0 * diagonal;
  }

  OwnedModel model;
  TrainerOptions options;
  std::unique_ptr<TrainingRun> run;
  reference::Image input, nodes;
  xt::xtensor<double, 3> slopes, free;
  xt::xtensor<double, 4> gradient;
};

}  // namespace

TEST_CASE("free nodes: no bias, and the variance of the nodes that no clamp holds") {
  constexpr int32_t queries = 16, steps = 2000;
  const LinearNodeLoss loss(queries);
  const double all = static_cast<double>(loss.nodes.size()), held = all - xt::sum(loss.free)();
  CHECK(held > 0.2 * all);
  CHECK(held < 0.8 * all);
  std::vector<double> mean(loss.gradient.size());
  double error = 0.0;
  for (int32_t step = 0; step < steps; ++step) {
    const Vector sums = loss.estimate(static_cast<uint32_t>(step));
    for (size_t i = 0; i < sums.size(); ++i) {
      const double value = static_cast<double>(sums[i]) / queries, wrong = value - loss.gradient.flat(i);
      mean[i] += value / steps;
      error += wrong * wrong / steps;
    }
  }
  const double variance = loss.squared_error() / queries;
  CHECK(error == doctest::Approx(variance).epsilon(0.03));
  double bias = 0.0;
  for (size_t i = 0; i < mean.size(); ++i)
    bias += (mean[i] - loss.gradient.flat(i)) * (mean[i] - loss.gradient.flat(i));
  CHECK(bias < 2.0 * variance / steps);
}

TEST_CASE("squared errors are (d - 1) / Q of random signs, (2d - 2) / Q of antithetic pairs, squared norms 1 more") {
  struct Theory {
    Pairs pairs;
    bool biases_apart;
    double queries, error;
  };
  for (const Theory& theory : {Theory{Pairs::one_sided, false, 16, 63 / 16.0},
                               {Pairs::one_sided, true, 8, 63 / 8.0},  // half of the queries are of biases
                               {Pairs::antithetic, false, 16, 126 / 16.0}}) {
    CAPTURE(theory.error);
    TrainerOptions options = with(16);
    options.pairs = theory.pairs;
    options.separate_biases = theory.biases_apart ? 1 : 0;
    const Norms found = norms(LinearLoss(8, 8, options), theory.queries, 2000);
    CHECK(std::abs(found.squared - (1.0 + theory.error)) < 3.0 * found.squared_error + 1e-9);
    CHECK(std::abs(found.error - theory.error) < 3.0 * found.error_error + 1e-9);
  }
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
