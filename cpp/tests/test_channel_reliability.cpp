#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "core/align/channel_reliability.hpp"
#include "core/zo/layer.hpp"
#include "reference/alignment.hpp"
#include "tests/meter.hpp"
#include "tests/random_network.hpp"
#include "tests/reference_network.hpp"

using namespace pmt;
using namespace pmt::tests;

namespace {

using Reliability = std::vector<ChannelReliability>;

// Of pairs: some pixels of every second image are new.
struct Case : NetworkCase {
  explicit Case(uint64_t seed) : NetworkCase(seed, 5, 8) {
    for (size_t i = 1; i < samples.images.size(); i += 2) {
      for (size_t k = 0; k < samples.images[i].size(); ++k) {
        if (random.integer(0, 2) > 0) samples.images[i][k] = samples.images[i - 1][k];
      }
    }
  }
};

std::vector<int32_t> mixing_layers(const Model& model) {
  std::vector<int32_t> layers;
  for (int32_t i = 0; i < model.op_count(); ++i) {
    if (mixes_channels(model, i)) layers.push_back(i);
  }
  return layers;
}

Reliability measure(OpenMeter<ReliabilityMeter>& open, const Model& model, int32_t op, const Samples& samples) {
  Reliability found(static_cast<size_t>(model.input_of(model.op(op)).channels));
  REQUIRE(open.meter().measure(op, samples.count(), source_of(samples), found.data()).ok());
  return found;
}

LayerCopy weighed(const Model& model, int32_t op, const Reliability& found, float strength) {
  LayerCopy layer(model, model.op(op));
  std::vector<float> scratch(static_cast<size_t>(weighing_floats(model, op)));
  weigh_channels(model, op, found.data(), strength, layer.writable(), scratch.data());
  return layer;
}

}  // namespace

TEST_CASE("measured reliabilities and means are those of the definition") {
  int32_t seen = 0;
  for (uint64_t seed = 1; seed <= 12; ++seed) {
    CAPTURE(seed);
    const Case c(seed);
    OpenMeter<ReliabilityMeter> open(c.model);
    for (const int32_t op : mixing_layers(c.model)) {
      CAPTURE(op);
      const Reliability found = measure(open, c.model, op, c.samples);
      const std::vector<reference::Image> inputs = inputs_of(c.model, op, c.samples);
      std::vector<reference::Image> first, second;
      for (size_t i = 0; i < inputs.size(); ++i) (i % 2 == 0 ? first : second).push_back(inputs[i]);
      for (size_t k = 0; k < found.size(); ++k) {
        ++seen;
        double mean = 0;
        for (const reference::Image& image : first) {
          mean += xt::mean(xt::cast<double>(xt::view(image, xt::all(), xt::all(), k)))() /
                  static_cast<double>(first.size());
        }
        CHECK(std::fabs(double{found[k].mean} - mean) <= 1e-4);
        const double exact = reference::reliability(first, second, static_cast<int32_t>(k));
        CHECK(std::fabs(double{found[k].correlation} - exact) <= 1e-5);
      }
    }
  }
  CHECK(seen > 50);
}

TEST_CASE("kernels, workers and their order do not change a bit of the reliabilities") {
  const auto equal = [](const Reliability& a, const Reliability& b) {
    for (size_t i = 0; i < a.size(); ++i) {
      if (a[i].mean != b[i].mean || a[i].correlation != b[i].correlation) return false;
    }
    return a.size() == b.size();
  };
  for (uint64_t seed = 21; seed <= 26; ++seed) {
    const Case c(seed);
    OpenMeter<ReliabilityMeter> plain(c.model);
    for_each_machine(seed, [&](const Machine& machine) {
      std::vector<int8_t> activations(static_cast<size_t>(c.samples.count() * kept_bytes(c.model)));
      KeptActivations kept = {activations.data(), c.samples.count()};
      OpenMeter<ReliabilityMeter> open(c.model, machine, &kept);
      for (const int32_t op : mixing_layers(c.model)) {
        CHECK(equal(measure(open, c.model, op, c.samples), measure(plain, c.model, op, c.samples)));
      }
    });
  }
}

TEST_CASE("weighed weights are theirs times their channels' share, and mean outputs stay") {
  int32_t seen = 0;
  for (uint64_t seed = 31; seed <= 40; ++seed) {
    CAPTURE(seed);
    Case c(seed);
    for (const int32_t op : mixing_layers(c.model)) {
      const OpRecord& record = c.model.op(op);
      const TensorRecord& in = c.model.input_of(record);
      Reliability found;
      for (int32_t k = 0; k < in.channels; ++k) {
        found.push_back(
            {static_cast<float>(c.random.integer(-100, 100)), static_cast<float>(c.random.integer(0, 10)) / 10.0f});
      }
      found.front().correlation = 1.0f;
      const float strength = static_cast<float>(c.random.integer(0, 4)) / 4.0f;
      const LayerCopy before(c.model, record);
      const LayerCopy after = weighed(c.model, op, found, strength);
      for (int32_t k = 0; k < c.model.output_of(record).channels; ++k) {
        const auto at = static_cast<size_t>(k);
        const ChannelWeights of = channel_weights(c.model, record, k);
        if (channel_is_dead(before.scales[at])) {
          CHECK(after.scales[at] == before.scales[at]);
          CHECK(after.bias[at] == before.bias[at]);
          continue;
        }
        double change = 0;
        for (int32_t i = 0; i < of.count; ++i) {
          const ChannelReliability& channel = found[static_cast<size_t>(i % in.channels)];
          const auto index = static_cast<size_t>(of.first + i * of.stride);
          const double was = double{before.scales[at]} * before.weights[index];
          const double now = double{after.scales[at]} * after.weights[index];
          CHECK(std::fabs(now - was * (1 - strength * (1 - channel.correlation))) <= 0.501 * after.scales[at]);
          change += (now - was) * (channel.mean - static_cast<float>(in.zero_point));
          ++seen;
        }
        const double moved = double{after.scales[at]} * after.bias[at] - double{before.scales[at]} * before.bias[at];
        // Every weight's rounding is off by half a step times its mean.
        CHECK(std::fabs(change + moved) <= after.scales[at] * (1.0 + 0.5 * 256.0 * of.count));
      }
    }
  }
  CHECK(seen > 500);
}

TEST_CASE("channels that are equally reliable leave a layer as it is, but for the range of its weights") {
  const Case c(60);
  const int32_t op = mixing_layers(c.model).front();
  const OpRecord& record = c.model.op(op);
  const auto size = static_cast<size_t>(c.model.input_of(record).channels);
  const LayerCopy before(c.model, record);
  const LayerCopy full = weighed(c.model, op, Reliability(size, {50.0f, 1.0f}), 1.0f);
  CHECK((weighed(c.model, op, Reliability(size, {50.0f, 0.5f}), 1.0f) == full));
  for (int32_t k = 0; k < c.model.output_of(record).channels; ++k) {
    const auto at = static_cast<size_t>(k);
    if (channel_is_dead(before.scales[at])) continue;
    const ChannelWeights of = channel_weights(c.model, record, k);
    int32_t largest = 0;
    for (int32_t i = 0; i < of.count; ++i) {
      largest = std::max(largest, std::abs(int32_t{before.weights[static_cast<size_t>(of.first + i * of.stride)]}));
    }
    CHECK(double{full.scales[at]} == doctest::Approx(double{before.scales[at]} * largest / 127));
    CHECK(std::fabs(double{full.scales[at]} * full.bias[at] - double{before.scales[at]} * before.bias[at]) <=
          0.51 * full.scales[at] + 1e-6 * std::fabs(double{before.scales[at]} * before.bias[at]));
  }
}

TEST_CASE("a layer none of whose channels is reliable stays as it is") {
  const Case c(61);
  const int32_t op = mixing_layers(c.model).front();
  const OpRecord& record = c.model.op(op);
  const Reliability none(static_cast<size_t>(c.model.input_of(record).channels), {50.0f, 0.0f});
  CHECK((weighed(c.model, op, none, 1.0f) == LayerCopy(c.model, record)));
}

TEST_CASE("what has no reliability is refused") {
  const Case c(50);
  for (int32_t i = 0; i < c.model.op_count(); ++i) {
    const OpRecord& op = c.model.op(i);
    const bool mixes = op.kind == OpKind::conv2d || op.kind == OpKind::fully_connected;
    CHECK(mixes_channels(c.model, i) ==
          (mixes && i + 1 < c.model.op_count() && op.input[0] != c.model.header().input_tensor));
  }
  CHECK(!mixes_channels(c.model, -1));
  CHECK(!mixes_channels(c.model, c.model.op_count()));
  OpenMeter<ReliabilityMeter> open(c.model);
  Reliability found(64);
  const auto code = [&](int32_t op, int32_t samples, const SampleSource& source) {
    return open.meter().measure(op, samples, source, found.data()).code;
  };
  const int32_t op = mixing_layers(c.model).front();
  CHECK(code(-1, 2, source_of(c.samples)) == Code::layer_not_trainable);
  CHECK(code(0, 2, source_of(c.samples)) == Code::layer_not_trainable);
  CHECK(code(op, 0, source_of(c.samples)) == Code::batch_size);
  CHECK(code(op, 3, source_of(c.samples)) == Code::batch_size);
  CHECK(code(op, 2, unreadable_source) == Code::sample_unreadable);
  // A pair that failed leaves nothing behind.
  Reliability again = measure(open, c.model, op, c.samples);
  OpenMeter<ReliabilityMeter> fresh(c.model);
  CHECK(again.front().correlation == measure(fresh, c.model, op, c.samples).front().correlation);
}
