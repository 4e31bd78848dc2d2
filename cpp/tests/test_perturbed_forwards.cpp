#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <functional>

#include "core/base/arithmetic.hpp"
#include "host/inference.hpp"
#include "host/perturbed_forwards.hpp"
#include "tests/random_network.hpp"
#include "tests/training_run.hpp"

namespace pmt::tests {
namespace {

constexpr int32_t samples = 3, queries = 7;
const std::function<bool()> never = [] { return false; };

std::vector<float> logits_of(const host::HostModel& model, const std::vector<int8_t>& images) {
  std::vector<float> logits(static_cast<size_t>(samples * model.model().classes()));
  host::batch_logits(model, images.data(), samples, false, 1, never, logits.data());
  return logits;
}

struct Case {
  explicit Case(RandomSource& random)
      : image(random_dag(random, 6)),
        host(image.data(), image.size()),
        images(random.bytes(int64_t{samples} * element_count(model().input()))) {}
  const Model& model() const { return host.model(); }

  AlignedBytes image;
  host::HostModel host;
  std::vector<int8_t> images;
};

// The logits of the images with a layer that holds the sums.
std::vector<float> changed_logits(const AlignedBytes& image, int32_t op, const int8_t* weights, const int32_t* bias,
                                  const std::vector<int8_t>& images) {
  host::HostModel model(image.data(), image.size());
  const OpRecord& record = model.model().op(op);
  const LayerStorage storage = model.storage(op);
  for (int32_t i = 0; i < weight_count(model.model(), record); ++i) {
    storage.weights[i] = static_cast<int8_t>(clamp(storage.weights[i] + weights[i], -127, 127));
  }
  for (int32_t c = 0; c < model.model().output_of(record).channels; ++c) {
    storage.bias[c] = saturated(int64_t{storage.bias[c]} + bias[c]);
  }
  model.repack(op);
  return logits_of(model, images);
}

}  // namespace

TEST_CASE("a perturbed layer gives the logits of a model that holds the sums, for any number of threads") {
  for (uint64_t seed = 1; seed <= 12; ++seed) {
    RandomSource random(seed);
    const Case c(random);
    for (const int32_t op : trainable_layers(c.model())) {
      const int32_t count = weight_count(c.model(), c.model().op(op));
      const int32_t channels = c.model().output_of(c.model().op(op)).channels;
      const std::vector<int8_t> weights = random.bytes(int64_t{queries} * count);
      std::vector<int32_t> bias(static_cast<size_t>(queries * channels));
      for (int32_t& value : bias) value = random.integer(-3000, 3000);
      const host::LayerPerturbation perturbation = {op, queries, {weights.data(), count, 0}, {bias.data(), channels, 0},
                                                    {}, false};
      const auto size = static_cast<size_t>(samples * c.model().classes());
      std::vector<float> found(queries * size), threaded(queries * size);
      const host::SampleArray array = {c.images.data(), nullptr, samples};
      host::perturbed_logits(c.host, perturbation, array, false, 1, never, found.data());
      host::perturbed_logits(c.host, perturbation, array, false, 3, never, threaded.data());
      CHECK(found == threaded);
      for (const int32_t query : {0, 3, 6}) {
        const std::vector<float> wanted =
            changed_logits(c.image, op, weights.data() + query * count, bias.data() + query * channels, c.images);
        CHECK(std::equal(wanted.begin(), wanted.end(), found.begin() + static_cast<std::ptrdiff_t>(query * size)));
      }
    }
  }
}

TEST_CASE("moved nodes of a channel are those of every position, and each sample may have its own") {
  RandomSource random(5);
  const Case c(random);
  for (const int32_t op : trainable_layers(c.model())) {
    const TensorRecord& out = c.model().output_of(c.model().op(op));
    const int32_t channels = out.channels, nodes = element_count(out), sets = queries * samples;
    const std::vector<int8_t> by_channel = random.bytes(int64_t{sets} * channels);
    std::vector<int8_t> by_node(static_cast<size_t>(sets * nodes));
    for (int32_t i = 0; i < sets * nodes; ++i) {
      by_node[static_cast<size_t>(i)] = by_channel[static_cast<size_t>(i / nodes * channels + i % channels)];
    }
    std::vector<float> logits[2];
    for (const bool one : {true, false}) {
      const std::vector<int8_t>& values = one ? by_channel : by_node;
      const int32_t each = one ? channels : nodes;
      std::vector<float>& found = logits[one ? 0 : 1];
      found.resize(static_cast<size_t>(sets * c.model().classes()));
      const host::LayerPerturbation perturbation = {op, queries, {}, {}, {values.data(), samples * each, each}, one};
      host::perturbed_logits(c.host, perturbation, {c.images.data(), nullptr, samples}, false, 2, never, found.data());
    }
    CHECK(logits[0] == logits[1]);
  }
}

}  // namespace pmt::tests
