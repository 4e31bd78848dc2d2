// The mean prediction that losses of the next step look at: a trainer goes on from it.
#include <doctest/doctest.h>

#include <algorithm>
#include <limits>

#include "tests/image_builder.hpp"
#include "tests/random_network.hpp"
#include "tests/random_options.hpp"
#include "tests/training_run.hpp"

using namespace pmt;
using namespace pmt::tests;

namespace {

struct Setting : TrainingCase {
  Setting(RandomSource& random, float diversity, bool weights) : TrainingCase(random_dag(random, 6)) {
    samples = random_samples(random, model, 3);
    options.queries = 4;
    options.rounding = Rounding::stochastic;
    options.step = Step::normalized;
    options.rule = random_rule(random);
    options.sharing = static_cast<Sharing>(random.integer(0, 1));
    options.scope = static_cast<Scope>(random.integer(0, 1));
    options.loss = Loss::entropy;
    options.diversity = diversity;
    options.train_weights = weights ? 1 : 0;
  }
};

void copy_parameters(const Trainer& from, const Trainer& to) {
  for (int32_t i = 0; i < from.layer_count(); ++i) {
    const Layer &source = from.layer(i), &target = to.layer(i);
    std::copy(source.weights, source.weights + source.weight_count, target.weights);
    std::copy(source.bias, source.bias + source.channels, target.bias);
  }
}

}  // namespace

TEST_CASE("training goes on from its mean prediction as if it had never stopped") {
  RandomSource random(61);
  int32_t kept = 0;
  for (int32_t kind = 0; kind < 6; ++kind) {
    CAPTURE(kind);
    const Setting setting(random, kind % 2 == 0 ? 0.0f : 0.7f, kind < 3);
    TrainingRun whole = setting.run(), stopped = setting.run(), resumed = setting.run();
    const SampleSource source = source_of(setting.samples);
    StepResult result = {};
    for (uint32_t step = 0; step < 4; ++step) {
      REQUIRE(whole.trainer().step(step, 0.9f, 3, source, &result).ok());
      Trainer& second = step < 2 ? stopped.trainer() : resumed.trainer();
      if (step == 2) {
        copy_parameters(stopped.trainer(), resumed.trainer());
        const MeanPrediction &from = stopped.trainer().prediction(), &to = resumed.trainer().prediction();
        REQUIRE(from.count() == to.count());
        std::copy(from.surprisal(), from.surprisal() + from.count(), to.surprisal());
        CHECK(to.check().ok());
        kept += from.count() > 0;
      }
      REQUIRE(second.step(step, 0.9f, 3, source, &result).ok());
    }
    CHECK(resumed.parameters() == whole.parameters());
    CHECK(whole.trainer().steps_begun() == 4);
  }
  CHECK(kept == 3);
}

TEST_CASE("a mean prediction that no training can have left is refused") {
  RandomSource random(64);
  const Setting setting(random, 0.7f, true);
  TrainingRun run = setting.run();
  const MeanPrediction& prediction = run.trainer().prediction();
  REQUIRE(prediction.count() == setting.model.classes());
  CHECK(prediction.check().ok());
  for (const float bad : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    prediction.surprisal()[prediction.count() - 1] = bad;
    CHECK(prediction.check().code == Code::surprisal);
  }
}
