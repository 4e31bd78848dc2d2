// Steps that end early: the caller stops, or a sample cannot be read.
#include <doctest/doctest.h>

#include "tests/image_builder.hpp"
#include "tests/random_network.hpp"
#include "tests/shuffled_executor.hpp"
#include "tests/training_run.hpp"

using namespace pmt;
using namespace pmt::tests;

namespace {

struct Setting : TrainingCase {
  explicit Setting(uint64_t seed) : Setting(RandomSource(seed)) {}
  explicit Setting(RandomSource random) : TrainingCase(random_dag(random, 6)) {
    samples = random_samples(random, model, 3);
    options.queries = 3;
    options.rounding = Rounding::stochastic;
    options.step = Step::normalized;
  }
};

// Reads samples until a given read, which fails as every later one does.
struct FailingSource {
  const Samples* samples;
  int32_t good_reads;
  int32_t reads = 0;

  SampleSource source() {
    return {this, [](void* context, int32_t index, int8_t* image, int32_t* label) {
              auto& self = *static_cast<FailingSource*>(context);
              if (self.reads++ >= self.good_reads) return false;
              const SampleSource all = source_of(*self.samples);
              return all.read(all.context, index, image, label);
            }};
  }
};

}  // namespace

TEST_CASE("a step canceled at any check for a stop leaves every weight as it was, and runs again as if never begun") {
  for (const Scope scope : {Scope::layer_wise, Scope::model_wise}) {
    for (const int32_t workers : {1, 3}) {
      CAPTURE(workers);
      Setting setting(40);
      setting.options.scope = scope;
      ShuffledExecutor counting(1, workers);
      TrainingRun whole = setting.run(counting.executor());
      const std::vector<int32_t> before = whole.parameters();
      REQUIRE(whole.train(setting.samples, 1, 0.7f).ok());
      REQUIRE(whole.parameters() != before);

      ShuffledExecutor executor(2, workers);
      TrainingRun run = setting.run(executor.executor());
      for (int32_t check = 0; check < counting.checks(); ++check) {
        executor.stop_at(check);
        CHECK(run.train(setting.samples, 1, 0.7f).code == Code::cancelled);
        CHECK(run.parameters() == before);
      }
      executor.stop_at(-1);
      REQUIRE(run.train(setting.samples, 1, 0.7f).ok());
      CHECK(run.parameters() == whole.parameters());
    }
  }
}

TEST_CASE("a step whose tasks stopped halfway is canceled, though every task was begun") {
  const Setting setting(43);
  Executor executor = sequential_executor();
  executor.run = [](void*, int32_t count, Executor::Task task, void* argument, bool) {
    for (int32_t i = 0; i < count; ++i) task(argument, i, 0);
    return true;
  };
  executor.stopping = [](void*, int32_t) { return true; };
  TrainingRun run = setting.run(executor);
  const std::vector<int32_t> before = run.parameters();
  CHECK(run.train(setting.samples, 1, 0.7f).code == Code::cancelled);
  CHECK(run.parameters() == before);
}

TEST_CASE("a stop that comes after the losses waits for the whole update") {
  const Setting setting(44);
  TrainingRun whole = setting.run();
  REQUIRE(whole.train(setting.samples, 1, 0.7f).ok());
  bool wanted = false;
  Executor executor = sequential_executor();
  executor.context = &wanted;
  executor.run = [](void* context, int32_t count, Executor::Task task, void* argument, bool may_stop) {
    bool& stop = *static_cast<bool*>(context);
    if (stop && may_stop) return false;
    for (int32_t i = 0; i < count; ++i) task(argument, i, 0);
    stop = true;
    return true;
  };
  executor.stopping = [](void* context, int32_t) { return *static_cast<bool*>(context); };
  TrainingRun run = setting.run(executor);
  CHECK(run.train(setting.samples, 1, 0.7f).ok());
  CHECK(run.parameters() == whole.parameters());
  CHECK(run.train(setting.samples, 1, 0.7f).code == Code::cancelled);
}

TEST_CASE("a sample that cannot be read ends the step before any weight changes") {
  for (const int32_t workers : {1, 3}) {
    const Setting setting(41);
    ShuffledExecutor executor(1, workers);
    TrainingRun run = setting.run(executor.executor());
    const std::vector<int32_t> before = run.parameters();
    const int32_t evaluation_reads = workers == 1 ? 3 : 9;  // a task for a sample, or for one of its 3 queries
    for (int32_t good = 0; good < evaluation_reads; ++good) {
      CAPTURE(good);
      FailingSource failing = {&setting.samples, good};
      StepResult result = {7, 7, 7};
      CHECK(run.trainer().step(0, 0.7f, 3, failing.source(), &result).code == Code::sample_unreadable);
      CHECK(result.loss_sum == 7);
      CHECK(run.parameters() == before);
    }
    FailingSource failing = {&setting.samples, 2};
    CHECK(run.trainer().estimate(0, 3, failing.source(), 0).code == Code::sample_unreadable);
    CHECK(run.train(setting.samples, 1, 0.7f).ok());
  }
}

TEST_CASE("a sample that cannot be read a second time is an error, not a wrong gradient") {
  Setting setting(42);
  setting.options.rule = EstimatorRule::node;
  TrainingRun run = setting.run();
  const std::vector<int32_t> before = run.parameters();
  FailingSource failing = {&setting.samples, 4};  // all three, then one of the last layer's gradient
  StepResult result = {};
  CHECK(run.trainer().step(0, 0.7f, 3, failing.source(), &result).code == Code::sample_unreadable);
  CHECK(failing.reads == 5);
  CHECK(run.parameters() == before);  // the last layer is updated first, and it failed
}
