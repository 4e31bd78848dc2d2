// The trainer stays inside the memory it asks for, and asks for no more than it needs.
#include <doctest/doctest.h>

#include <algorithm>

#include "tests/image_builder.hpp"
#include "tests/random_dag.hpp"
#include "tests/shuffled_executor.hpp"
#include "tests/training_run.hpp"

using namespace pmt;
using namespace pmt::tests;

namespace {

constexpr size_t guard_bytes = 4096;
constexpr uint8_t guard = 0xC3;

struct Setting : TrainingCase {
  explicit Setting(RandomSource random)
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
  const Setting setting{RandomSource(50)};
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
      Setting setting{RandomSource(seed)};
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
