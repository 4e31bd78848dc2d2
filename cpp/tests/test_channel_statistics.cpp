#include <doctest/doctest.h>

#include <cmath>

#include "core/align/channel_statistics.hpp"
#include "reference/alignment.hpp"
#include "tests/meter.hpp"
#include "tests/random_network.hpp"
#include "tests/reference_network.hpp"
#include "tests/shuffled_executor.hpp"
#include "tests/training_run.hpp"

using namespace pmt;
using namespace pmt::tests;

namespace {

using Statistics = std::vector<ChannelStatistics>;

// Without a guess: three rounds, each closer.
class Meter {
 public:
  explicit Meter(const Model& model, const Machine& machine = {}, KeptActivations* kept = nullptr)
      : model_(model), open_(model, machine, kept) {}

  Statistics measure(int32_t op, const Samples& samples) {
    const TensorRecord& out = model_.output_of(model_.op(op));
    Statistics found(static_cast<size_t>(out.channels), {0.0f, 32.0f * out.scale});
    REQUIRE(meter().measure(op, samples.count(), source_of(samples), 3, found.data(), found.data()).ok());
    return found;
  }

  StatisticsMeter& meter() { return open_.meter(); }

 private:
  const Model& model_;
  OpenMeter<StatisticsMeter> open_;
};

std::vector<reference::Sums> exact_sums(const Model& model, int32_t op, const Samples& samples) {
  const OpParameters parameters = parameters_of(model)[static_cast<size_t>(op)];
  std::vector<reference::Sums> all;
  for (const reference::Image& input : inputs_of(model, op, samples)) {
    const LinearCase linear = linear_case(model, model.op(op), parameters, input);
    all.push_back(exact_sums(linear, linear.input.data()));
  }
  return all;
}

struct Case : NetworkCase {
  explicit Case(uint64_t seed) : NetworkCase(seed, 4, 12) {}
};

bool same(const Statistics& a, const Statistics& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(ChannelStatistics)) == 0;
}

}  // namespace

TEST_CASE("measured statistics are those of the exact outputs") {
  for (uint64_t seed = 1; seed <= 12; ++seed) {
    CAPTURE(seed);
    const Case c(seed);
    Meter meter(c.model);
    for (const int32_t op : trainable_layers(c.model)) {
      CAPTURE(op);
      const Statistics found = meter.measure(op, c.samples);
      const std::vector<reference::Sums> sums = exact_sums(c.model, op, c.samples);
      for (size_t k = 0; k < found.size(); ++k) {
        const float weight_scale = c.model.weight_scales(c.model.op(op))[k];
        if (channel_is_dead(weight_scale)) {
          CHECK(found[k].mean == 0.0f);
          CHECK(found[k].deviation == 0.0f);
          continue;
        }
        const double scale = double{c.model.input_of(c.model.op(op)).scale} * double{weight_scale};
        const auto expected =
            reference::channel_statistics(sums, static_cast<int32_t>(k), c.model.bias(c.model.op(op))[k], scale);
        // An output is resolved to a sixteenth of a deviation, and there are at least a dozen.
        CHECK(std::abs(found[k].mean - expected.mean) <= 0.06 * expected.deviation + scale);
        CHECK(std::abs(found[k].deviation - expected.deviation) <= 0.06 * expected.deviation + scale);
      }
    }
  }
}

TEST_CASE("kernels, workers and their order do not change a bit") {
  for (uint64_t seed = 21; seed <= 26; ++seed) {
    const Case c(seed);
    Meter plain(c.model);
    for_each_machine(seed, [&](const Machine& machine) {
      Meter meter(c.model, machine);
      for (const int32_t op : trainable_layers(c.model)) {
        CHECK(same(meter.measure(op, c.samples), plain.measure(op, c.samples)));
      }
    });
  }
}

TEST_CASE("activations that are kept change no bit") {
  for (uint64_t seed = 61; seed <= 72; ++seed) {
    CAPTURE(seed);
    Case c(seed);
    ShuffledExecutor team(seed, 3);
    const Machine machine(team.executor());
    const int32_t bytes = kept_bytes(c.model);
    std::vector<int8_t> memory(static_cast<size_t>(c.samples.count()) * static_cast<size_t>(bytes));
    KeptActivations kept = {memory.data(), c.samples.count()};
    Meter meter(c.model, machine, &kept);
    const std::vector<int32_t> layers = trainable_layers(c.model);
    for (const int32_t op : layers) {
      CAPTURE(op);
      Meter plain(c.model);
      const Statistics found = plain.measure(op, c.samples);
      CHECK(same(meter.measure(op, c.samples), found));
      CHECK(kept.op == op);
      // The layer itself may change then, but for nothing before it.
      const_cast<float*>(c.model.weight_scales(c.model.op(op)))[0] *= 1.5f;
    }
    // An earlier layer begins with the samples again.
    Meter plain(c.model);
    CHECK(same(meter.measure(layers[0], c.samples), plain.measure(layers[0], c.samples)));
    CHECK(kept.op == layers[0]);
  }
}

TEST_CASE("a measurement that fails keeps nothing") {
  const Case c(73);
  std::vector<int8_t> memory(static_cast<size_t>(c.samples.count()) * static_cast<size_t>(kept_bytes(c.model)));
  KeptActivations kept = {memory.data(), c.samples.count()};
  Meter meter(c.model, {}, &kept);
  const int32_t last = trainable_layers(c.model).back();
  meter.measure(last, c.samples);
  CHECK(kept.op == last);
  const Statistics guess(64, {0.0f, 1.0f});
  Statistics found(64);
  const int32_t first = trainable_layers(c.model)[0];
  CHECK(meter.meter().measure(first, c.samples.count(), unreadable_source, 1, guess.data(), found.data()).code ==
        Code::sample_unreadable);
  CHECK(kept.op == 0);
  CHECK(meter.meter().measure(first, c.samples.count() + 1, source_of(c.samples), 1, guess.data(), found.data()).code ==
        Code::batch_size);
}

TEST_CASE("an aligned layer has the reference's statistics, and its weights stay") {
  for (uint64_t seed = 31; seed <= 40; ++seed) {
    CAPTURE(seed);
    Case c(seed);
    for (const int32_t op : trainable_layers(c.model)) {
      CAPTURE(op);
      const OpRecord& record = c.model.op(op);
      Meter before(c.model);
      const Statistics found = before.measure(op, c.samples);
      Statistics wanted = found;
      for (ChannelStatistics& one : wanted) {
        one = {one.mean * 0.5f + 0.3f * one.deviation, one.deviation * static_cast<float>(c.random.real(0.3, 3.0))};
      }
      const std::vector<int8_t> weights(c.model.weights(record),
                                        c.model.weights(record) + weight_count(c.model, record));
      align_layer(
          c.model, op, wanted.data(), found.data(),
          {nullptr, const_cast<int32_t*>(c.model.bias(record)), const_cast<float*>(c.model.weight_scales(record))});
      Meter after(c.model);
      const Statistics now = after.measure(op, c.samples);
      for (size_t k = 0; k < now.size(); ++k) {
        if (found[k].deviation == 0.0f) continue;
        const float scale = c.model.input_of(record).scale * c.model.weight_scales(record)[k];
        CHECK(now[k].deviation == doctest::Approx(wanted[k].deviation).epsilon(0.08));
        CHECK(std::abs(now[k].mean - wanted[k].mean) <= 0.08f * wanted[k].deviation + scale);
      }
      CHECK(std::equal(weights.begin(), weights.end(), c.model.weights(record)));
    }
  }
}

TEST_CASE("gains are bounded, and constant or dead channels stay") {
  ImageBuilder builder({{1, 1, 1, 0.5f}, {1, 1, 5, 0.5f}});
  OpRecord op = window_op(OpKind::conv2d, 0, 1, {1, 1, 1, 1, 0, 0}, 0, 0);
  builder.add_op(op, {{4, 4, 4, 4, 4}, {10, 10, 10, 10, 10}, {0.25f, 0.25f, 0.25f, 1e-9f, 0.25f}});
  const OwnedModel model(builder.build());
  std::vector<int32_t> bias(5, 10);
  std::vector<float> scales = {0.25f, 0.25f, 0.25f, 1e-9f, 0.25f};
  const Statistics reference = {{1.0f, 2.0f}, {1.0f, 100.0f}, {1.0f, 0.0f}, {1.0f, 1.0f}, {1.0f, 1.0f}};
  const Statistics found = {{0.25f, 1.0f}, {0.25f, 1.0f}, {0.25f, 1.0f}, {0.0f, 0.0f}, {0.25f, 0.0f}};
  align_layer(model, 0, reference.data(), found.data(), {nullptr, bias.data(), scales.data()});
  CHECK(scales == std::vector<float>{0.5f, 4.0f, 0.25f, 1e-9f, 0.25f});
  // 10 * 0.125 = 1.25 of the mean 0.25 is bias; doubled, the rest is -2, and 3 / (0.5 * 0.5) = 12; in the same way 17 /
  // (0.5 * 4) = 8.5, to even.
  CHECK(bias == std::vector<int32_t>{12, 8, 10, 10, 10});
}

TEST_CASE("what cannot be measured is refused") {
  const Case c(50);
  Meter meter(c.model);
  const Statistics guess(64, {0.0f, 1.0f});
  Statistics found(64);
  const SampleSource source = source_of(c.samples);
  CHECK(meter.meter().measure(-1, 1, source, 1, guess.data(), found.data()).code == Code::layer_not_trainable);
  const int32_t op = trainable_layers(c.model)[0];
  CHECK(meter.meter().measure(op, 0, source, 1, guess.data(), found.data()).code == Code::batch_size);
  CHECK(meter.meter().measure(op, 1 << 25, source, 1, guess.data(), found.data()).code == Code::batch_size);
  CHECK(meter.meter().measure(op, 1, unreadable_source, 1, guess.data(), found.data()).code == Code::sample_unreadable);
}
