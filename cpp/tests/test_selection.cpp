#include <doctest/doctest.h>

#include <map>

#include "core/train/selection.hpp"
#include "core/zo/loss.hpp"
#include "core/zo/loss_units.hpp"
#include "tests/engine.hpp"
#include "tests/random_network.hpp"
#include "tests/training_run.hpp"

using namespace pmt;
using namespace pmt::tests;

namespace {

// Parameters of every layer in memory of their own, and a store that counts its calls and can fail.
struct Trial {
  Trial(const Model& network, const TrainerOptions& trainer_options, Samples train, Samples test)
      : model(network), options(trainer_options), samples(std::move(train)), held_out(std::move(test)) {
    for (const int32_t op : trainable_layers(model)) {
      const OpRecord& record = model.op(op);
      weights[op] = {model.weights(record), model.weights(record) + weight_count(model, record)};
      bias[op] = {model.bias(record), model.bias(record) + model.output_of(record).channels};
    }
  }

  Status run(const std::vector<int32_t>& layers, CandidateScore* score) {
    std::vector<LayerStorage> storage;
    for (const int32_t op : layers) storage.push_back({weights[op].data(), bias[op].data()});
    const Candidate candidate = {layers.data(), storage.data(), static_cast<int32_t>(layers.size())};
    AlignedBytes memory(1 << 22, 0xA5);
    return select_layers(setup(), &candidate, 1, memory.data(), memory.size(), score);
  }

  SelectionSetup setup() {
    const TrainerSetup trainer = {&model,          &portable_kernels(),  &options, nullptr, 0, nullptr,
                                  samples.count(), sequential_executor()};
    return {trainer,
            {this, save, restore},
            {this, begin, source_of(samples), samples.count(), steps},
            source_of(held_out),
            held_out.count()};
  }

  static Status begin(void* context, uint32_t step, float* learning_rate) {
    auto& trial = *static_cast<Trial*>(context);
    *learning_rate = trial.learning_rate;
    return static_cast<int32_t>(step) == trial.fails_at_step ? Status{Code::sample_unreadable} : Status{};
  }
  static Status save(void* context, const Layer& layer) {
    auto& trial = *static_cast<Trial*>(context);
    trial.saved[layer.op] = {trial.weights[layer.op], trial.bias[layer.op]};
    return {};
  }
  static Status restore(void* context, const Layer& layer) {
    auto& trial = *static_cast<Trial*>(context);
    trial.weights[layer.op].assign(trial.saved[layer.op].first.begin(), trial.saved[layer.op].first.end());
    trial.bias[layer.op].assign(trial.saved[layer.op].second.begin(), trial.saved[layer.op].second.end());
    return trial.restore_fails ? Status{Code::sample_unreadable, layer.op} : Status{};
  }

  const Model& model;
  TrainerOptions options;
  Samples samples, held_out;
  int32_t steps = 3;
  float learning_rate = 1.5f;
  int32_t fails_at_step = -1;
  bool restore_fails = false;
  std::map<int32_t, std::vector<int8_t>> weights;
  std::map<int32_t, std::vector<int32_t>> bias;
  std::map<int32_t, std::pair<std::vector<int8_t>, std::vector<int32_t>>> saved;
};

struct Case {
  explicit Case(uint32_t seed) : random(seed), model(random_network(random, 3, Head::fully_connected)) {
    options.queries = 3;
    options.mu_weight = options.mu_node = 2;
    options.baseline = Baseline::leave_one_out;
    options.step = Step::normalized;
  }
  Trial trial() { return Trial(model, options, random_samples(random, model, 4), random_samples(random, model, 6)); }

  RandomSource random;
  OwnedModel model;
  TrainerOptions options;
};

CandidateScore untrained(const Model& model, const Samples& held_out) {
  Engine engine(model);
  CandidateScore score = {0, 0};
  for (size_t n = 0; n < held_out.images.size(); ++n) {
    const std::vector<float> logits = engine.logits(held_out.images[n], false);
    score.loss_sum += cross_entropy(logits.data(), model.classes(), held_out.labels[n]);
    score.correct += arg_max(logits.data(), model.classes()) == held_out.labels[n] ? 1 : 0;
  }
  return score;
}

}  // namespace

TEST_CASE("without steps, every candidate scores as the start does") {
  for (uint32_t seed = 1; seed <= 10; ++seed) {
    Case c(seed);
    Trial trial = c.trial();
    trial.steps = 0;
    const CandidateScore expected = untrained(c.model, trial.held_out);
    for (const int32_t op : trainable_layers(c.model)) {
      CandidateScore score = {};
      REQUIRE(trial.run({op}, &score).ok());
      CHECK(score.loss_sum == expected.loss_sum);
      CHECK(score.correct == expected.correct);
    }
  }
}

TEST_CASE("a candidate is trained from the start, and nothing is left of it") {
  int32_t changed = 0;
  for (uint32_t seed = 1; seed <= 10; ++seed) {
    Case c(seed);
    Trial trial = c.trial();
    const auto weights = trial.weights;
    const auto bias = trial.bias;
    const std::vector<int32_t> layers = trainable_layers(c.model);
    const int64_t start = untrained(c.model, trial.held_out).loss_sum;
    CandidateScore first = {}, other = {}, again = {};
    REQUIRE(trial.run({layers[0]}, &first).ok());
    CHECK(trial.weights == weights);
    CHECK(trial.bias == bias);
    REQUIRE(trial.run({layers[1]}, &other).ok());
    REQUIRE(trial.run({layers[0]}, &again).ok());
    CHECK(again.loss_sum == first.loss_sum);
    CHECK(again.correct == first.correct);
    changed += first.loss_sum != start ? 1 : 0;
  }
  CHECK(changed >= 8);
}

TEST_CASE("a trial that fails restores the parameters and tells its own error") {
  Case c(5);
  Trial trial = c.trial();
  const auto weights = trial.weights;
  CandidateScore score = {};
  trial.fails_at_step = 1;
  CHECK(trial.run({trainable_layers(c.model)[0]}, &score).code == Code::sample_unreadable);
  CHECK(trial.weights == weights);
  trial.fails_at_step = -1;
  trial.learning_rate = -1.0f;
  trial.restore_fails = true;
  CHECK(trial.run({trainable_layers(c.model)[0]}, &score).code == Code::option_learning_rate);
  trial.learning_rate = 1.0f;
  CHECK(trial.run({trainable_layers(c.model)[0]}, &score).code == Code::sample_unreadable);
  trial.held_out.labels[0] = c.model.classes();
  CHECK(trial.run({trainable_layers(c.model)[0]}, &score).code == Code::label_range);
}
