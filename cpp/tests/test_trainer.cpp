#include <doctest/doctest.h>

#include <algorithm>
#include <limits>
#include <memory>

#include "core/train/trainer.hpp"
#include "tests/image_builder.hpp"
#include "tests/layer_update.hpp"
#include "tests/random_network.hpp"
#include "tests/random_options.hpp"
#include "tests/shuffled_executor.hpp"
#include "tests/simulated_kernels.hpp"
#include "tests/training_run.hpp"

using namespace pmt;
using namespace pmt::tests;

namespace {

// With random samples and options.
struct Setting : TrainingCase {
  Setting(RandomSource& random, AlignedBytes network) : TrainingCase(std::move(network)) {
    options = random_options(random);
    samples = random_samples(random, model, random.integer(1, 5));
  }
  explicit Setting(RandomSource& random)
      : Setting(random, random_network(random, random.integer(1, 5),
                                       random.pick<Head>({Head::fully_connected, Head::conv2d, Head::pool}))) {}

  std::vector<int32_t> trained(const TrainerOptions& with, const Machine& machine) const {
    TrainingRun run(model, with, trainable_layers(model), samples.count(), machine);
    REQUIRE(run.train(samples, 3, 0.7f).ok());
    return run.parameters();
  }

  std::vector<int32_t> start() const { return run().parameters(); }
};

// conv2d -> fully_connected, as small as a network gets.
struct SmallSetting : TrainingCase {
  SmallSetting() {
    RandomSource random(30);
    ImageBuilder builder({{2, 2, 2}, {2, 2, 3}, {2, 2, 3}, {1, 1, 4}});
    builder.add_op(plain_op(OpKind::conv2d, 0, 1), random_linear_data(random, 3, 2));
    builder.add_op(plain_op(OpKind::reshape, 1, 2));
    builder.add_op(plain_op(OpKind::fully_connected, 2, 3), random_linear_data(random, 4, 12));
    model.take(builder.build());
    samples = random_samples(random, model, 3);
    options.queries = 4;
  }
};

}  // namespace

TEST_CASE("every combination of estimator, scope, generator, rounding and sharing is the same in any order") {
  RandomSource random(36);
  Setting setting(random, random_dag(random, 8));
  int32_t learned = 0;
  for (uint32_t choice = 0; choice < 3 * 2 * 2 * 2 * 2; ++choice) {
    CAPTURE(choice);
    TrainerOptions options = setting.options;
    options.rule = static_cast<EstimatorRule>(choice / 16);
    options.scope = static_cast<Scope>(choice / 8 % 2);
    options.generator = static_cast<Generator>(choice / 4 % 2);
    options.rounding = static_cast<Rounding>(choice / 2 % 2);
    options.sharing = static_cast<Sharing>(choice % 2);
    options.pairs = static_cast<Pairs>(choice / 3 % 2);
    if (options.pairs == Pairs::antithetic) options.queries += options.queries % 2;
    const std::vector<int32_t> expected = setting.trained(options, sequential_executor());
    ShuffledExecutor reversed(choice, 5, TaskOrder::reversed), shuffled(choice, 5);
    CHECK(setting.trained(options, reversed.executor()) == expected);
    CHECK(setting.trained(options, shuffled.executor()) == expected);
    learned += expected != setting.start();
  }
  CHECK(learned == 48);
}

TEST_CASE("every set of kernels of this machine trains the bytes of the portable ones") {
  RandomSource random(37);
  for (int i = 0; i < 60; ++i) {
    CAPTURE(i);
    const Setting setting(random,
                          i % 2 == 0 ? random_network(random, 3, Head::fully_connected) : random_dag(random, 6));
    const std::vector<int32_t> portable = setting.trained(setting.options, {});
    for (const Kernels* kernels : tested_kernels()) {
      CAPTURE(kernels->name);
      Machine machine;
      machine.kernels = kernels;
      machine.query_bytes = random.pick<int32_t>({0, 3000, 1 << 20});
      CHECK(setting.trained(setting.options, machine) == portable);
    }
  }
}

TEST_CASE("tasks in any order on any number of workers, and any number of queries at once give the same bytes") {
  RandomSource random(35);
  for (int i = 0; i < 40; ++i) {
    CAPTURE(i);
    const Setting setting = i % 2 == 0 ? Setting(random) : Setting(random, random_dag(random, 6));
    const std::vector<int32_t> expected = setting.trained(setting.options, {});
    for (const int32_t bytes : {0, 1, 3000, 1 << 20}) {
      for (const int32_t workers : {1, 2, 5}) {
        CAPTURE(bytes);
        CAPTURE(workers);
        ShuffledExecutor shuffled(random.bits(), workers);
        Machine machine(shuffled.executor());
        machine.query_bytes = bytes;
        CHECK(setting.trained(setting.options, machine) == expected);
      }
    }
  }
}

TEST_CASE("every layer's update is computed on the weights from before the step") {
  RandomSource random(38);
  for (int i = 0; i < 20; ++i) {
    CAPTURE(i);
    Setting setting(random, random_dag(random, 7));
    setting.options.rule = EstimatorRule::node;
    const int32_t count = setting.samples.count();
    const SampleSource source = source_of(setting.samples);
    TrainingRun whole = setting.run();
    StepResult result = {};
    REQUIRE(whole.trainer().step(9, 2.0f, count, source, &result).ok());
    for (int32_t k = 0; k < whole.trainer().layer_count(); ++k) {
      TrainingRun alone = setting.run();
      Trainer& trainer = alone.trainer();
      const Layer& layer = trainer.layer(k);
      REQUIRE(trainer.estimate(9, count, source, k).ok());
      update_layer(trainer.context(), layer, trainer.update_input(layer, 2.0f, count), trainer.sums());
      const int8_t* weights = whole.trainer().layer(k).weights;
      const int32_t* bias = whole.trainer().layer(k).bias;
      CHECK(std::equal(weights, weights + layer.weight_count, layer.weights));
      CHECK(std::equal(bias, bias + layer.channels, layer.bias));
    }
  }
}

TEST_CASE("an estimate changes nothing") {
  RandomSource random(37);
  for (int i = 0; i < 10; ++i) {
    CAPTURE(i);
    const Setting setting(random);
    TrainingRun run = setting.run();
    for (int32_t layer = 0; layer < run.trainer().layer_count(); ++layer) {
      CHECK(run.trainer().estimate(5, setting.samples.count(), source_of(setting.samples), layer).ok());
    }
    CHECK(run.parameters() == setting.start());
    CHECK(run.train(setting.samples, 3, 0.7f).ok());
    CHECK(run.parameters() == setting.trained(setting.options, sequential_executor()));
  }
}

TEST_CASE("an estimate refuses a trainer that keeps no gradient of a whole layer, and bad samples") {
  SmallSetting setting;
  const auto code = [&](bool compact, int32_t samples) {
    Machine machine;
    machine.compact = compact;
    TrainingRun run = setting.run(machine);
    const std::vector<int32_t> before = run.parameters();
    const Status status = run.trainer().estimate(0, samples, source_of(setting.samples), 0);
    CHECK(run.parameters() == before);
    return status.code;
  };
  CHECK(code(false, 3) == Code::ok);
  CHECK(code(true, 3) == Code::estimate_compact);
  CHECK(code(false, 0) == Code::batch_size);
  CHECK(code(false, 4) == Code::batch_size);
}

TEST_CASE("a compact trainer refuses packed weights, which are not weights of bands") {
  SmallSetting setting;
  const int32_t layer = 0;
  const LayerStorage storage = {};
  PackedLayer packed = {};
  AlignedBytes memory(1024, 0);
  TrainerSetup setup = {
      &setting.model, &portable_kernels(), &setting.options, &layer, 1, &storage, 1, sequential_executor(), &packed};
  setup.compact = true;
  Trainer trainer;
  CHECK(trainer.open(setup, memory.data(), memory.size()).code == Code::option_value);
  setup.compact = false;
  CHECK(trainer.open(setup, memory.data(), memory.size()).code == Code::arena_too_small);
}

TEST_CASE("a step reports the loss from before its update") {
  SmallSetting setting;
  TrainingRun run = setting.run();
  const SampleSource source = source_of(setting.samples);
  StepResult first = {}, second = {}, third = {};
  const std::vector<int32_t> before = run.parameters();
  CHECK(run.trainer().step(0, 0.0f, 3, source, &first).ok());
  CHECK(run.parameters() == before);
  CHECK(run.trainer().step(1, 0.5f, 3, source, &second).ok());
  CHECK(run.trainer().step(2, 0.0f, 3, source, &third).ok());
  CHECK(first.loss_sum == second.loss_sum);
  CHECK(first.loss_sum != third.loss_sum);
  CHECK(first.changed == 0);
  CHECK(second.changed > 0);
}

TEST_CASE("open refuses setups that cannot work") {
  SmallSetting setting;
  std::vector<int8_t> weights(64);
  std::vector<int32_t> bias(8);
  const LayerStorage storage[] = {{weights.data(), bias.data()}, {weights.data() + 16, bias.data() + 4}};
  AlignedBytes memory(1 << 16);
  const auto code = [&](std::vector<int32_t> layers, int32_t batch) {
    Trainer trainer;
    const auto count = static_cast<int32_t>(layers.size());
    return trainer
        .open({&setting.model, &portable_kernels(), &setting.options, layers.data(), count, storage, batch,
               sequential_executor()},
              memory.data(), memory.size())
        .code;
  };
  CHECK(code({0, 2}, 3) == Code::ok);
  CHECK(code({0, 2}, 0) == Code::batch_size);
  CHECK(code({}, 3) == Code::layer_repeated);
  CHECK(code({2, 0}, 3) == Code::layer_repeated);
  CHECK(code({0, 0}, 3) == Code::layer_repeated);
  CHECK(code({1}, 3) == Code::layer_not_trainable);
  CHECK(code({3}, 3) == Code::layer_not_trainable);
  CHECK(code({-1}, 3) == Code::layer_not_trainable);
  CHECK(code({0, 2}, 1 << 20) == Code::arena_too_small);
  setting.options.queries = 0;
  CHECK(code({0, 2}, 3) == Code::option_queries);
}

TEST_CASE("a step refuses bad samples and leaves every weight as it was") {
  SmallSetting setting;
  TrainingRun run = setting.run();
  const std::vector<int32_t> before = run.parameters();
  StepResult result = {};
  const SampleSource source = source_of(setting.samples);
  CHECK(run.trainer().step(0, 0.1f, 0, source, &result).code == Code::batch_size);
  CHECK(run.trainer().step(0, 0.1f, 4, source, &result).code == Code::batch_size);
  CHECK(run.trainer().step(0, -0.1f, 3, source, &result).code == Code::option_learning_rate);
  const float nan = std::numeric_limits<float>::quiet_NaN();
  CHECK(run.trainer().step(0, nan, 3, source, &result).code == Code::option_learning_rate);
  CHECK(run.trainer().step(0, 0.1f, 3, unreadable_source, &result).code == Code::sample_unreadable);
  setting.samples.labels[1] = 4;
  CHECK(run.trainer().step(0, 0.1f, 3, source, &result).code == Code::label_range);
  setting.samples.labels[1] = -1;
  CHECK(run.trainer().step(0, 0.1f, 3, source, &result).code == Code::label_range);
  CHECK(run.parameters() == before);
}

// The trainer stays inside the memory it asks for, and asks for no more than it needs.
namespace {

constexpr size_t guard_bytes = 4096;
constexpr uint8_t guard = 0xC3;

struct GuardedSetting : TrainingCase {
  explicit GuardedSetting(RandomSource random)
      : TrainingCase(random_dag(random, 7)), layers(trainable_layers(model)), own(model, layers) {
    samples = random_samples(random, model, 3);
    options.queries = 3;
  }

  TrainerSetup setup(const Executor& executor) const {
    return {&model,
            &portable_kernels(),
            &options,
            layers.data(),
            static_cast<int32_t>(layers.size()),
            own.storage.data(),
            3,
            executor};
  }

  std::vector<int32_t> layers;
  OwnParameters own;
};

bool is_untouched(const uint8_t* first, size_t count) {
  return std::all_of(first, first + count, [](uint8_t byte) { return byte == guard; });
}

}  // namespace

TEST_CASE("any smaller memory is refused, and not a byte beyond it is written") {
  const GuardedSetting setting{RandomSource(50)};
  const TrainerSetup setup = setting.setup(sequential_executor());
  const size_t tables = Trainer::table_bytes(setting.model, setup.layer_count);
  Trainer measuring;
  AlignedBytes enough(tables);
  REQUIRE(measuring.open(setup, enough.data(), tables).code == Code::arena_too_small);
  const size_t needed = measuring.bytes_needed();
  AlignedBytes memory(needed + guard_bytes, guard);
  for (size_t size = 0; size < needed; size += size % 37 + 1) {
    CAPTURE(size);
    Trainer trainer;
    CHECK(trainer.open(setup, memory.data(), size).code == Code::arena_too_small);
    if (size >= tables) CHECK(trainer.bytes_needed() == needed);
    CHECK(is_untouched(memory.data() + size, needed + guard_bytes - size));
    std::fill_n(memory.data(), size, guard);
  }
  Trainer trainer;
  CHECK(trainer.open(setup, memory.data(), needed - 1).code == Code::arena_too_small);
  CHECK(trainer.open(setup, memory.data(), needed).ok());
  CHECK(trainer.bytes_needed() == needed);
  CHECK(trainer.open(setup, memory.data() + 4, needed).code == Code::arena_alignment);
  TrainerSetup idle = setup;
  idle.executor.workers = 0;
  CHECK(trainer.open(idle, memory.data(), needed).code == Code::option_value);
}

TEST_CASE("sizes beyond memory never wrap around to fit") {
  Arena arena(nullptr, 64);
  arena.take<int32_t>(INT64_MAX / 8);
  arena.take<int32_t>(INT64_MAX / 8);
  arena.take<int32_t>(INT64_MAX / 8);
  arena.take<int32_t>(INT64_MAX / 8);
  arena.take<int32_t>(16);
  CHECK(!arena.fits());
}

TEST_CASE("training writes nothing around its memory, nor to the image") {
  for (uint64_t seed = 51; seed < 61; ++seed) {
    for (const EstimatorRule rule : {EstimatorRule::by_dimension, EstimatorRule::weight, EstimatorRule::node}) {
      CAPTURE(seed);
      GuardedSetting setting{RandomSource(seed)};
      setting.options.rule = rule;
      ShuffledExecutor executor(seed, 2);
      const TrainerSetup setup = setting.setup(executor.executor());
      AlignedBytes tables(Trainer::table_bytes(setting.model, setup.layer_count));
      Trainer trainer;
      REQUIRE(trainer.open(setup, tables.data(), tables.size()).code == Code::arena_too_small);
      const size_t needed = trainer.bytes_needed();
      AlignedBytes memory(needed + 2 * guard_bytes, guard);
      REQUIRE(trainer.open(setup, memory.data() + guard_bytes, needed).ok());
      const AlignedBytes image(setting.model.image());
      StepResult result = {};
      for (uint32_t step = 0; step < 2; ++step) {
        REQUIRE(trainer.step(step, 0.5f, 3, source_of(setting.samples), &result).ok());
      }
      CHECK(is_untouched(memory.data(), guard_bytes));
      CHECK(is_untouched(memory.data() + guard_bytes + needed, guard_bytes));
      CHECK(std::equal(image.data(), image.data() + image.size(), setting.model.image().data()));
    }
  }
}

TEST_CASE("sums lie over what is alive where losses are all they need, else beside it") {
  ImageBuilder builder({{4, 4, 8}, {1, 1, 10}});
  builder.add_op(plain_op(OpKind::fully_connected, 0, 1), constant_data(1280, 10));
  const OwnedModel model(builder.build());
  TrainerOptions options;
  options.loss = Loss::function;  // no exact gradient of the head
  Machine device;
  device.compact = true;
  const auto activations = [&](EstimatorRule rule, int32_t sum_bytes) {
    options.rule = rule;
    device.sum_bytes = sum_bytes;
    TrainingRun run(model, options, {0}, 1, device);
    return run.trainer().plan().bytes();
  };
  // Image, logits and a patch of int16 take 128 + 16 + 256 bytes; a channel's sums, 128 weights and a bias of
  // 8 bytes each, 1,032.
  CHECK(activations(EstimatorRule::weight, 0) == 10320);
  CHECK(activations(EstimatorRule::weight, 2100) == 2064);
  CHECK(activations(EstimatorRule::node, 0) == 400 + 10320);
  CHECK(activations(EstimatorRule::node, 2100) == 400 + 2064);
}
