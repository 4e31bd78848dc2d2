#include <doctest/doctest.h>

#include <cmath>

#include "core/align/covariance_alignment.hpp"
#include "core/align/window_statistics.hpp"
#include "reference/alignment.hpp"
#include "tests/meter.hpp"
#include "tests/random_network.hpp"
#include "tests/reference_network.hpp"

using namespace pmt;
using namespace pmt::tests;

namespace {

struct Windows {
  std::vector<float> means, values;
  bool operator==(const Windows& other) const { return means == other.means && values == other.values; }
};

Windows measure(WindowMeter& meter, const Model& model, int32_t op, const Samples& samples,
                const std::vector<float>& centers) {
  const WindowGroups groups = window_groups(model, op);
  Windows found = {std::vector<float>(centers.size()),
                   std::vector<float>(static_cast<size_t>(groups.count * groups.values()))};
  REQUIRE(
      meter.measure(op, samples.count(), source_of(samples), centers.data(), found.means.data(), found.values.data())
          .ok());
  return found;
}

// Twice: the first measurement finds the means.
Windows measure(WindowMeter& meter, const Model& model, int32_t op, const Samples& samples) {
  const auto channels = static_cast<size_t>(model.input_of(model.op(op)).channels);
  const Windows first = measure(meter, model, op, samples, std::vector<float>(channels, 0.0f));
  return measure(meter, model, op, samples, first.means);
}

std::vector<int32_t> window_layers(const Model& model) {
  std::vector<int32_t> layers;
  for (int32_t i = 0; i < model.op_count(); ++i) {
    if (has_weights(model.op(i)) && window_groups(model, i).count > 0) layers.push_back(i);
  }
  return layers;
}

LayerCopy aligned(const Model& model, int32_t op, const Windows& wanted, const Windows& found) {
  LayerCopy layer(model, model.op(op));
  const WindowGroups groups = window_groups(model, op);
  AlignedBytes scratch(covariance_alignment_bytes(groups));
  for (int32_t group = 0; group < groups.count; ++group) {
    align_covariances(model, op, group, {wanted.means.data(), wanted.values.data()},
                      {found.means.data(), found.values.data()}, layer.writable(), scratch.data());
  }
  return layer;
}

std::vector<float> real_weights(const Model& model, int32_t op, const LayerCopy& layer, int32_t channel) {
  const ChannelWeights at = channel_weights(model, model.op(op), channel);
  std::vector<float> real;
  for (int32_t i = 0; i < at.count; ++i) {
    real.push_back(static_cast<float>(layer.weights[static_cast<size_t>(at.first + i * at.stride)]) *
                   layer.scales[static_cast<size_t>(channel)]);
  }
  return real;
}

// The variance of a channel's output with a layer's weights, on windows of these covariances, a mean variance of 1
// and the transport's ridge.
float variance(const Model& model, int32_t op, const Windows& windows, int32_t channel, const LayerCopy& layer) {
  const WindowGroups groups = window_groups(model, op);
  const int32_t group = groups.count > 1 ? channel / (model.output_of(model.op(op)).channels / groups.count) : 0;
  const auto window = static_cast<size_t>(groups.window());
  std::vector<float> matrix(window * window);
  window_covariance(groups, windows.values.data() + group * groups.values(), matrix.data());
  float trace = 0;
  for (size_t i = 0; i < window; ++i) trace += matrix[i * (window + 1)];
  if (!(trace > 0.0f)) return 0.0f;
  const std::vector<float> real = real_weights(model, op, layer, channel);
  float sum = 0;
  for (size_t i = 0; i < window; ++i) {
    for (size_t j = 0; j < window; ++j) {
      const float value = matrix[i * window + j] / trace * static_cast<float>(window);
      sum += real[i] * real[j] * (value + (i == j ? transport_ridge : 0.0f));
    }
  }
  return sum;
}

struct Case : NetworkCase {
  explicit Case(uint64_t seed) : NetworkCase(seed, 5, 6) {}
};

}  // namespace

TEST_CASE("measured autocovariances are those of the definition") {
  int32_t seen = 0;
  for (uint64_t seed = 1; seed <= 12; ++seed) {
    CAPTURE(seed);
    const Case c(seed);
    OpenMeter<WindowMeter> open(c.model);
    for (const int32_t op : window_layers(c.model)) {
      CAPTURE(op);
      ++seen;
      const WindowGroups groups = window_groups(c.model, op);
      const Windows found = measure(open.meter(), c.model, op, c.samples);
      const std::vector<reference::Image> inputs = inputs_of(c.model, op, c.samples);
      const int32_t pairs = groups.channels * groups.channels;
      for (int32_t i = 0; i < groups.count * groups.values(); ++i) {
        const Lag lag = lag_at(groups, i % groups.values() / pairs);
        const int32_t first = i / groups.values() * (groups.count > 1 ? 1 : 0) + i % pairs / groups.channels;
        const int32_t second = i / groups.values() * (groups.count > 1 ? 1 : 0) + i % groups.channels;
        const double exact = reference::autocovariance(inputs, first, second, lag.dy, lag.dx);
        const double spread = std::sqrt(reference::autocovariance(inputs, first, first, 0, 0) +
                                        reference::autocovariance(inputs, second, second, 0, 0));
        // Half a step of a mean is taken off as if it were the same at the borders.
        CHECK(std::fabs(double{found.values[static_cast<size_t>(i)]} - exact) <= 0.7 * spread + 0.3);
      }
    }
  }
  CHECK(seen > 10);
}

TEST_CASE("kernels, workers and their order do not change a bit of the windows") {
  for (uint64_t seed = 21; seed <= 26; ++seed) {
    const Case c(seed);
    OpenMeter<WindowMeter> plain(c.model);
    for_each_machine(seed, [&](const Machine& machine) {
      OpenMeter<WindowMeter> open(c.model, machine);
      for (const int32_t op : window_layers(c.model)) {
        CHECK(measure(open.meter(), c.model, op, c.samples) == measure(plain.meter(), c.model, op, c.samples));
      }
    });
  }
}

TEST_CASE("distances and the covariance matrix of a window") {
  const WindowGroups groups = {1, 2, 2, 2};
  CHECK(groups.window() == 8);
  CHECK(groups.lags() == 5);
  std::vector<std::pair<int32_t, int32_t>> lags;
  for (int32_t i = 0; i < groups.lags(); ++i) lags.emplace_back(lag_at(groups, i).dy, lag_at(groups, i).dx);
  CHECK(lags == std::vector<std::pair<int32_t, int32_t>>{{0, 0}, {0, 1}, {1, -1}, {1, 0}, {1, 1}});
  std::vector<float> values;
  for (int32_t i = 0; i < groups.values(); ++i) values.push_back(static_cast<float>(i));
  std::vector<float> matrix(64);
  window_covariance(groups, values.data(), matrix.data());
  // Position (0, 0) channel 0 with position (1, 1) channel 1: lag 4, pair (0, 1).
  CHECK(matrix[0 * 8 + 7] == 17.0f);
  // Position (1, 0) channel 1 with position (0, 1) channel 0: the other way round it is lag (1, -1), pair (0, 1).
  CHECK(matrix[5 * 8 + 2] == 9.0f);
  CHECK(matrix[2 * 8 + 5] == 9.0f);
}

TEST_CASE("equal windows leave a layer nearly as it is") {
  for (uint64_t seed = 31; seed <= 36; ++seed) {
    CAPTURE(seed);
    Case c(seed);
    OpenMeter<WindowMeter> open(c.model);
    for (const int32_t op : window_layers(c.model)) {
      const Windows found = measure(open.meter(), c.model, op, c.samples);
      const LayerCopy before(c.model, c.model.op(op)), after = aligned(c.model, op, found, found);
      for (int32_t k = 0; k < c.model.output_of(c.model.op(op)).channels; ++k) {
        const std::vector<float> was = real_weights(c.model, op, before, k);
        const std::vector<float> now = real_weights(c.model, op, after, k);
        float largest = 0;
        for (const float weight : was) largest = std::fmax(largest, std::fabs(weight));
        for (size_t i = 0; i < was.size(); ++i) CHECK(std::fabs(now[i] - was[i]) <= 0.02f * largest);
      }
    }
  }
}

TEST_CASE("an aligned channel has the variance on new windows that it had on the reference's") {
  int32_t seen = 0;
  for (uint64_t seed = 41; seed <= 46; ++seed) {
    CAPTURE(seed);
    Case c(seed);
    OpenMeter<WindowMeter> open(c.model);
    const Samples others = random_samples(c.random, c.model, 5);
    for (const int32_t op : window_layers(c.model)) {
      const OpRecord& record = c.model.op(op);
      const Windows wanted = measure(open.meter(), c.model, op, others);
      const Windows found = measure(open.meter(), c.model, op, c.samples);
      const LayerCopy before(c.model, record), after = aligned(c.model, op, wanted, found);
      for (int32_t k = 0; k < c.model.output_of(record).channels; ++k) {
        const float was = variance(c.model, op, wanted, k, before);
        const float now = variance(c.model, op, found, k, after);
        if (!(was > 0.0f)) continue;
        ++seen;
        CHECK(now == doctest::Approx(was).epsilon(0.05));
      }
    }
  }
  CHECK(seen > 20);
}

TEST_CASE("a pointwise layer, a large window and the last layer have no windows") {
  const Case c(50);
  for (int32_t i = 0; i < c.model.op_count(); ++i) {
    const OpRecord& op = c.model.op(i);
    const bool expected =
        i + 1 < c.model.op_count() && op.kernel_h * op.kernel_w > 1 &&
        (op.kind == OpKind::depthwise_conv2d ||
         (op.kind == OpKind::conv2d && op.kernel_h * op.kernel_w * c.model.input_of(op).channels <= largest_window));
    CHECK((window_groups(c.model, i).count > 0) == expected);
  }
  OpenMeter<WindowMeter> open(c.model);
  std::vector<float> none(64);
  CHECK(open.meter().measure(-1, 1, source_of(c.samples), none.data(), none.data(), none.data()).code ==
        Code::layer_not_trainable);
  const std::vector<int32_t> layers = window_layers(c.model);
  REQUIRE(!layers.empty());
  std::vector<float> values(10000);
  CHECK(open.meter().measure(layers[0], 0, source_of(c.samples), none.data(), none.data(), values.data()).code ==
        Code::batch_size);
  CHECK(open.meter().measure(layers[0], 1, unreadable_source, none.data(), none.data(), values.data()).code ==
        Code::sample_unreadable);
}
