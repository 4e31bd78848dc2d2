#include <doctest/doctest.h>

#include <climits>
#include <cmath>
#include <utility>
#include <vector>

#include "core/zo/estimated.hpp"
#include "core/zo/loss_range.hpp"
#include "reference/training_step.hpp"
#include "tests/image_builder.hpp"
#include "tests/layer_update.hpp"
#include "tests/random_source.hpp"

using namespace pmt;
using namespace pmt::tests;

namespace {

constexpr float input_scale = 0.03f;
constexpr float output_scale = 0.05f;

// A depthwise or an ordinary convolution of 6 output channels, the last one dead.
AlignedBytes one_layer(RandomSource& random, OpKind kind) {
  const int32_t in_channels = kind == OpKind::depthwise_conv2d ? 6 : 4;
  ImageBuilder builder({{3, 3, in_channels, input_scale}, {3, 3, 6, output_scale}});
  const int32_t taps = kind == OpKind::depthwise_conv2d ? 9 : 9 * in_channels;
  LinearData data = {random.bytes(taps * 6, -127, 127), {}, {}};
  for (int32_t c = 0; c < 6; ++c) {
    data.scales.push_back(c == 5 ? 3.9e-9f : static_cast<float>(random.real(0.002, 0.02)));
    data.bias.push_back(c == 5 ? INT_MIN : random.integer(-1000, 1000));
  }
  builder.add_op(window_op(kind, 0, 1, {3, 3, 1, 1, 1, 1}, 1, 1), data);
  return builder.build();
}

struct LayerCase {
  explicit LayerCase(RandomSource& random, OpKind kind) : model(one_layer(random, kind)) {
    const OpRecord& op = model.op(0);
    weights.assign(model.weights(op), model.weights(op) + weight_count(model, op));
    bias.assign(model.bias(op), model.bias(op) + 6);
    network = {&model, &portable_kernels(), nullptr, nullptr};
    context = {&network, nullptr, &options, nullptr, 1, 7};
    layer = {0,
             Estimator::weight_perturbation,
             weight_count(model, op),
             54,
             6,
             weights.data(),
             bias.data(),
             options.queries,
             options.mu_weight,
             options.mu_node};
  }

  OwnedModel model;
  TrainerOptions options;
  std::vector<int8_t> weights;
  std::vector<int32_t> bias;
  Network network = {};
  StepContext context = {};
  Layer layer = {};
};

// Units of a loss in 1.
double loss_units(const LayerCase& one) { return 1048576.0 / (1 << one.context.loss_shift); }

// Queries that move a layer's weights or nodes.
double weight_queries(const LayerCase& one) {
  const bool apart = one.options.separate_biases != 0 && !perturbs_nodes(one.layer);
  return apart ? (one.layer.queries + 1) / 2 : one.layer.queries;
}

// The divisor of the losses' differences, from the options' definitions.
double sum_divisor(const LayerCase& one, const UpdateInput& input) {
  double queries = weight_queries(one);
  const bool pairs = one.options.pairs == Pairs::antithetic;
  if (one.options.baseline == Baseline::leave_one_out && !pairs)
    queries *= (one.layer.queries - 1.0) / one.layer.queries;
  return loss_units(one) * queries * input.sample_sums;
}

// Gradient-norm scaling of the weights, from the options' definitions.
double norm_factor(const LayerCase& one, int32_t samples, int64_t free_nodes) {
  const auto mode = one.options.gradient_norm_scaling;
  const bool is_shared = shares_perturbations(one.options, one.layer.estimator);
  const bool by_sample =
      mode == GradientNormScaling::queries_and_samples || (mode == GradientNormScaling::directions && !is_shared);
  const double k = weight_queries(one) * (by_sample ? samples : 1.0);
  double dimension = perturbs_nodes(one.layer) ? node_columns(one.layer) : one.layer.weight_count;
  const bool moves_free_nodes =
      one.layer.estimator == Estimator::node_perturbation && one.options.nodes == PerturbedNodes::free;
  if (mode == GradientNormScaling::directions && moves_free_nodes) {
    dimension = std::max(1.0, static_cast<double>(free_nodes) / samples);
  }
  const bool together = one.options.separate_biases == 0 && !perturbs_nodes(one.layer);
  if (mode == GradientNormScaling::directions && together) dimension += one.layer.channels;
  return reference::gradient_norm_scaling(k, dimension);
}

double scale_of(const LayerCase& one, int32_t channel) { return one.model.weight_scales(one.model.op(0))[channel]; }

// Gradient by a stored weight of a channel.
double weight_gradient(const LayerCase& one, const UpdateInput& input, int32_t channel, int64_t sum) {
  const double by_accumulator = static_cast<double>(input_scale) * scale_of(one, channel);
  if (one.layer.estimator == Estimator::closed_form) {
    return static_cast<double>(sum) * by_accumulator / (loss_units(one) * input.samples);
  }
  const double mean = static_cast<double>(sum) / sum_divisor(one, input);
  if (one.layer.estimator == Estimator::weight_perturbation) return mean / one.layer.mu_weight;
  const double unit = one.layer.estimator == Estimator::pooled_perturbation ? 64.0 : 1.0;  // of the sums
  return mean / unit / one.layer.mu_node * by_accumulator / static_cast<double>(output_scale);
}

int32_t channel_of(const LayerCase& one, size_t weight) {
  const bool depthwise = one.model.op(0).kind == OpKind::depthwise_conv2d;
  return static_cast<int32_t>(depthwise ? weight % 6 : weight / (one.weights.size() / 6));
}

double near_tie(double update) { return std::abs(std::abs(update - std::floor(update)) - 0.5); }

std::vector<int64_t> random_sums(RandomSource& random, size_t count, double magnitude) {
  std::vector<int64_t> sums(count);
  for (int64_t& sum : sums) sum = static_cast<int64_t>(random.real(-magnitude, magnitude));
  return sums;
}

}  // namespace

TEST_CASE("round_update to the nearest takes halves to even") {
  CHECK(round_update(0.5f, Rounding::nearest, 0) == 0);
  CHECK(round_update(1.5f, Rounding::nearest, 0) == 2);
  CHECK(round_update(-2.6f, Rounding::nearest, 0) == -3);
  CHECK(round_update(1e9f, Rounding::nearest, 0) == 16384);
  CHECK(round_update(-1e9f, Rounding::stochastic, 0) == -16384);
}

TEST_CASE("stochastic rounding is exact in the mean over its 2^16 random numbers") {
  const auto sum_over_all = [](float update) {
    int64_t sum = 0;
    for (uint32_t random = 0; random < 65536; ++random) sum += round_update(update, Rounding::stochastic, random);
    return sum;
  };
  RandomSource random(23);
  for (const float update : {0.0f, 0.5f, -0.5f, 1.0f, 0.0000152587890625f, -0.0000152587890625f, 126.99998474121094f}) {
    CHECK(static_cast<double>(sum_over_all(update)) == static_cast<double>(update) * 65536.0);
  }
  for (int i = 0; i < 200; ++i) {  // any multiple of 2^-16
    const auto update = static_cast<float>(random.integer(-(1 << 23), 1 << 23)) / 65536.0f;
    CHECK(static_cast<double>(sum_over_all(update)) == static_cast<double>(update) * 65536.0);
  }
  for (int i = 0; i < 50; ++i) {  // anything else to that precision
    const auto update = static_cast<float>(random.real(-3.0, 3.0));
    CHECK(std::abs(static_cast<double>(sum_over_all(update)) - static_cast<double>(update) * 65536.0) < 1.0);
  }
}

TEST_CASE("stochastic rounding gives one of the two neighbors") {
  RandomSource random(24);
  for (int i = 0; i < 20000; ++i) {
    const auto update = static_cast<float>(random.real(-140.0, 140.0));
    const int32_t rounded = round_update(update, Rounding::stochastic, static_cast<uint32_t>(random.bits()));
    CHECK(std::abs(static_cast<float>(rounded) - update) <= 1.0f);
  }
}

TEST_CASE("update_layer with nearest rounding is the update in double") {
  RandomSource random(25);
  int32_t compared = 0, moved = 0;
  for (int i = 0; i < 120; ++i) {
    LayerCase one(random, random.chance(2) ? OpKind::conv2d : OpKind::depthwise_conv2d);
    one.layer.queries = random.integer(2, 50);
    one.layer.mu_weight = random.integer(1, 8);
    one.layer.mu_node = random.integer(1, 8);
    one.options.baseline = random.chance(2) ? Baseline::clean : Baseline::leave_one_out;
    one.options.gradient_norm_scaling = static_cast<GradientNormScaling>(random.integer(0, 3));
    one.options.sharing = static_cast<Sharing>(random.integer(0, 1));
    one.options.separate_biases = static_cast<uint32_t>(random.integer(0, 1));
    one.options.nodes = static_cast<PerturbedNodes>(random.integer(0, 1));
    one.options.quantization_aware_scaling = static_cast<uint32_t>(random.integer(0, 1));
    one.layer.estimator = static_cast<Estimator>(random.integer(0, 3));
    one.context.loss_shift = random.integer(0, largest_loss_shift);
    const UpdateInput input = {static_cast<float>(random.real(0.01, 1.0)), 8, random.chance(2) ? 8 : 1};
    const bool exact = one.layer.estimator == Estimator::closed_form;
    const auto mode = one.options.gradient_norm_scaling;
    const int64_t free_nodes = random.integer(0, 8 * one.layer.node_count);
    const double norm_scaling = mode == GradientNormScaling::none || exact ? 1.0 : norm_factor(one, 8, free_nodes);

    // Sums large enough to move the weights by a few steps.
    const double scale = one.options.quantization_aware_scaling != 0 ? 0.008 : 1.0;
    const double unit = std::abs(weight_gradient(one, input, 0, 1)) * norm_scaling / (scale * scale);
    const std::vector<int64_t> sums = random_sums(random, one.weights.size(), 5.0 / unit / input.learning_rate);
    std::vector<int64_t> bias_sums(6, 0);
    const std::vector<int8_t> before = one.weights;
    const int32_t changed = update_layer(
        one.context, one.layer, input, {const_cast<int64_t*>(sums.data()), bias_sums.data(), 0, INT32_MAX, free_nodes});
    int32_t different = 0;
    for (size_t w = 0; w < before.size(); ++w) {
      const int32_t channel = channel_of(one, w);
      different += one.weights[w] != before[w];
      if (channel == 5) {
        CHECK(one.weights[w] == before[w]);  // dead
        continue;
      }
      const double divisor = one.options.quantization_aware_scaling != 0 ? scale_of(one, channel) : 1.0;
      const double update = norm_scaling * reference::scaled_update(weight_gradient(one, input, channel, sums[w]),
                                                                    static_cast<double>(input.learning_rate), divisor);
      if (near_tie(update) < 1e-4 * std::max(1.0, std::abs(update))) continue;  // float32 may fall either way
      ++compared;
      CHECK(one.weights[w] == reference::updated_weight(before[w], update));
    }
    CHECK(changed == different);
    CHECK(one.bias[5] == INT_MIN);
    moved += changed;
  }
  CHECK(compared > 5000);
  CHECK(moved > 3000);
}

TEST_CASE("a bias moves by its own gradient and scale") {
  RandomSource random(26);
  for (int i = 0; i < 50; ++i) {
    LayerCase one(random, OpKind::conv2d);
    one.layer.queries = 10;
    one.layer.mu_weight = random.integer(1, 4);
    one.options.mu_bias = i % 3;  // 0: as far as the weights' mu
    one.options.pairs = i % 2 == 0 ? Pairs::one_sided : Pairs::antithetic;
    const UpdateInput input = {0.1f, 4, 4};
    std::vector<int64_t> sums(one.weights.size(), 0);
    std::vector<int64_t> bias_sums = random_sums(random, 6, 1e6);
    const std::vector<int32_t> before = one.bias;
    const std::vector<int8_t> weights = one.weights;
    CHECK(update_layer(one.context, one.layer, input, {sums.data(), bias_sums.data()}) == 0);
    CHECK(one.weights == weights);
    for (int32_t c = 0; c < 5; ++c) {
      const double bias_scale = static_cast<double>(input_scale) * scale_of(one, c);
      const double as_weights = std::nearbyint(one.layer.mu_weight * static_cast<double>(output_scale) / bias_scale);
      const double mu = one.options.mu_bias == 0 ? as_weights : one.options.mu_bias;
      const double gradient = static_cast<double>(bias_sums[static_cast<size_t>(c)]) / sum_divisor(one, input) / mu;
      const double update = reference::scaled_update(gradient, 0.1, bias_scale);
      const int32_t expected = reference::updated_bias(before[static_cast<size_t>(c)], update);
      CHECK(std::abs(one.bias[static_cast<size_t>(c)] - expected) <= 1e-5 * std::abs(update) + 1.0);
    }
    CHECK(one.bias[5] == INT_MIN);
  }
}

TEST_CASE("biases stay where they are not trained, and inside int32 where they are") {
  RandomSource random(27);
  LayerCase one(random, OpKind::conv2d);
  std::vector<int64_t> sums(one.weights.size(), 0), bias_sums(6, 1000000000);
  one.options.train_bias = 0;
  const std::vector<int32_t> before = one.bias;
  update_layer(one.context, one.layer, {1.0f, 1, 1}, {sums.data(), bias_sums.data()});
  CHECK(one.bias == before);
  one.options.train_bias = 1;
  one.bias[0] = INT_MIN + 5;
  update_layer(one.context, one.layer, {1.0f, 1, 1}, {sums.data(), bias_sums.data()});
  CHECK(one.bias[0] == INT_MIN);
}

TEST_CASE("a normalized update has the root mean square that was asked for") {
  RandomSource random(28);
  LayerCase one(random, OpKind::conv2d);
  one.options.step = Step::normalized;
  one.options.quantization_aware_scaling = 0;
  one.options.rounding = Rounding::nearest;
  for (int8_t& weight : one.weights) weight = 0;
  std::vector<int64_t> sums = random_sums(random, one.weights.size(), 1e8), bias_sums(6, 0);
  update_layer(one.context, one.layer, {20.0f, 1, 1}, {sums.data(), bias_sums.data()});
  double squares = 0.0;
  for (size_t w = 0; w < 180; ++w) squares += one.weights[w] * one.weights[w];  // the five live channels
  CHECK(std::sqrt(squares / 180.0) == doctest::Approx(20.0).epsilon(0.01));
  const std::vector<int8_t> moved = one.weights;
  std::fill(sums.begin(), sums.end(), 0);  // no gradient, no direction
  CHECK(update_layer(one.context, one.layer, {20.0f, 1, 1}, {sums.data(), bias_sums.data()}) == 0);
  CHECK(one.weights == moved);
}

TEST_CASE("a learning rate at the end of float moves nothing without a gradient, nor where its factor overflows") {
  for (const Step step : {Step::gradient, Step::normalized}) {
    for (const Rounding rounding : {Rounding::nearest, Rounding::stochastic}) {
      for (const bool overflows : {false, true}) {
        RandomSource random(30);
        LayerCase one(random, OpKind::conv2d);
        one.options.step = step;
        one.options.rounding = rounding;
        auto* scales = const_cast<float*>(one.model.weight_scales(one.model.op(0)));
        if (overflows) std::fill(scales, scales + 6, 2e-6f);  // 1 / scale^2, times the rate, is infinite
        const std::vector<int8_t> weights = one.weights;
        const std::vector<int32_t> bias = one.bias;
        std::vector<int64_t> sums(one.weights.size(), 0), bias_sums(6, 0);
        CHECK(update_layer(one.context, one.layer, {3e38f, 1, 1}, {sums.data(), bias_sums.data()}) == 0);
        CHECK(one.weights == weights);
        CHECK(one.bias == bias);
        std::fill(sums.begin(), sums.end(), INT64_MAX / 4);
        update_layer(one.context, one.layer, {3e38f, 1, 1}, {sums.data(), bias_sums.data()});
        for (const int8_t weight : one.weights) CHECK(weight >= -127);
      }
    }
  }
}

TEST_CASE("stochastic rounding of a layer differs by step and layer seed, not by call") {
  RandomSource random(29);
  LayerCase one(random, OpKind::conv2d);
  one.options.rounding = Rounding::stochastic;
  one.options.step = Step::normalized;
  std::vector<int64_t> sums = random_sums(random, one.weights.size(), 1e8), bias_sums(6, 0);
  const std::vector<int8_t> start = one.weights;
  const auto updated = [&](uint32_t step) {
    std::copy(start.begin(), start.end(), one.weights.begin());
    one.context.step = step;
    update_layer(one.context, one.layer, {0.5f, 1, 1}, {sums.data(), bias_sums.data()});
    return one.weights;
  };
  CHECK(updated(1) == updated(1));
  CHECK(updated(1) != updated(2));
}

TEST_CASE("biases and an exact head have rates of their own, multiples of the learning rate") {
  for (const Step step : {Step::gradient, Step::normalized}) {
    for (const bool head : {false, true}) {
      RandomSource random(35);
      LayerCase one(random, OpKind::conv2d);
      one.options.step = step;
      one.layer.estimator = head ? Estimator::closed_form : Estimator::pooled_perturbation;
      std::vector<int64_t> sums = random_sums(random, one.weights.size(), 1e8), bias_sums = random_sums(random, 6, 1e8);
      const std::vector<int8_t> start = one.weights;
      const std::vector<int32_t> start_bias = one.bias;
      const auto moved = [&](float learning_rate, float bias_rate, float head_rate) {
        one.weights.assign(start.begin(), start.end());
        one.bias.assign(start_bias.begin(), start_bias.end());
        one.options.bias_rate = bias_rate;
        one.options.head_rate = head_rate;
        update_layer(one.context, one.layer, {learning_rate, 1, 1}, {sums.data(), bias_sums.data()});
        return std::pair(std::vector<int8_t>(one.weights), std::vector<int32_t>(one.bias));
      };
      const auto slow = moved(0.25f, 1.0f, 1.0f), fast = moved(2.0f, 1.0f, 1.0f);
      CHECK(slow.first != fast.first);
      const auto biases = moved(0.25f, 8.0f, 1.0f);
      CHECK(biases.first == slow.first);
      CHECK(biases.second == (head ? slow.second : fast.second));
      CHECK(moved(0.25f, 1.0f, 8.0f) == (head ? fast : slow));
    }
  }
}

TEST_CASE("biases alone move without sums of the weights") {
  RandomSource random(34);
  LayerCase one(random, OpKind::conv2d);
  one.options.train_weights = 0;
  one.options.step = Step::normalized;
  const std::vector<int8_t> weights = one.weights;
  const std::vector<int32_t> bias = one.bias;
  std::vector<int64_t> bias_sums = random_sums(random, 6, 1e8);
  CHECK(update_layer(one.context, one.layer, {1.0f, 1, 1}, {nullptr, bias_sums.data()}) == 0);
  CHECK(one.weights == weights);
  CHECK(one.bias != bias);
}
