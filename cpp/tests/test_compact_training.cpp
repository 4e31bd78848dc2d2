// A device's memory: what it does without changes no byte of what it trains.
#include <doctest/doctest.h>

#include <algorithm>

#include "tests/random_network.hpp"
#include "tests/random_options.hpp"
#include "tests/training_run.hpp"

using namespace pmt;
using namespace pmt::tests;

namespace {

AlignedBytes any_network(RandomSource& random) {
  switch (random.integer(0, 3)) {
    case 0: return random_dag(random, random.integer(0, 9));
    case 1: return random_network(random, random.integer(0, 5), Head::fully_connected);
    default: return random_bottlenecks(random, random.integer(1, 4));
  }
}

}  // namespace

TEST_CASE("compact training changes the same bytes") {
  RandomSource random(70);
  int32_t streamed = 0, layers_in_streams = 0;
  for (int i = 0; i < 300; ++i) {
    CAPTURE(i);
    const OwnedModel model(any_network(random));
    TrainerOptions options = random_options(random);
    options.scope = random.chance(4) ? Scope::model_wise : Scope::layer_wise;
    std::vector<int32_t> layers;
    for (const int32_t layer : trainable_layers(model)) {
      if (layers.empty() || !random.chance(3)) layers.push_back(layer);
    }
    const Samples samples = random_samples(random, model, random.chance(2) ? 1 : 3);
    Machine compact;
    compact.compact = true;
    if (random.chance(2)) compact.kernels = &arm_dsp_kernels();
    compact.sum_bytes = random.pick<int32_t>({0, 8, 200});
    TrainingRun usual(model, options, layers, samples.count(), {});
    TrainingRun sparing(model, options, layers, samples.count(), compact);
    CHECK(usual.train(samples, 3, 0.5f).code == sparing.train(samples, 3, 0.5f).code);
    CHECK(usual.parameters() == sparing.parameters());
    streamed += streams_of(sparing.trainer().plan(), model).empty() ? 0 : 1;
    for (const int32_t layer : layers) layers_in_streams += sparing.trainer().plan().streams(layer) ? 1 : 0;
  }
  CHECK(streamed > 80);
  CHECK(layers_in_streams > 200);
}

TEST_CASE("the size of the weight tile does not change the bytes") {
  RandomSource random(72);
  ImageBuilder builder({{1, 1, 300}, {1, 1, 40}});
  builder.add_op(plain_op(OpKind::fully_connected, 0, 1), random_linear_data(random, 40, 300));
  const OwnedModel model(builder.build());
  TrainerOptions options;
  options.queries = 6;
  options.rule = EstimatorRule::weight;
  Machine device;
  device.compact = true;
  TrainingRun usual(model, options, {0}, 3, {}), sparing(model, options, {0}, 3, device);
  const auto channels = [&](TrainingRun& run) {
    const Trainer& trainer = run.trainer();
    return weight_tile_channels(trainer.network(), trainer.plan(), trainer.layer(0), options);
  };
  CHECK(channels(usual) == 40);
  CHECK(channels(sparing) == 13);
  const Samples samples = random_samples(random, model, 3);
  REQUIRE(usual.train(samples, 3, 5.0f).ok());
  REQUIRE(sparing.train(samples, 3, 5.0f).ok());
  CHECK(usual.parameters() == sparing.parameters());
}

TEST_CASE("a stream's tensors are those of its ops run one after another") {
  RandomSource random(71);
  int32_t streamed = 0;
  for (int i = 0; i < 200; ++i) {
    CAPTURE(i);
    const OwnedModel model(random_bottlenecks(random, random.integer(1, 5)));
    Machine compact;
    compact.compact = true;
    const std::vector<int32_t> head = {model.op_count() - 1};
    TrainingRun whole(model, {}, head, 1, {}), bands(model, {}, head, 1, compact);
    const Samples samples = random_samples(random, model, 1);
    const auto start = [&](const Trainer& trainer) {
      const uint32_t input = model.header().input_tensor;
      std::copy(samples.images[0].begin(), samples.images[0].end(),
                trainer.workspace(0).tensor(trainer.plan(), Pass::main, input));
    };
    const Trainer &one = whole.trainer(), &other = bands.trainer();
    start(one);
    start(other);
    for (int32_t op = 0; op < model.op_count(); op = other.plan().segment_end(op) + 1) {
      const int32_t end = other.plan().segment_end(op) + 1;
      forward(one.network(), one.plan(), one.workspace(0), 1, op, end);
      forward(other.network(), other.plan(), other.workspace(0), 1, op, end);
      const uint32_t output = model.op(end - 1).output;
      const int8_t* expected = one.workspace(0).tensor(one.plan(), Pass::main, output);
      CHECK(std::equal(expected, expected + element_count(model.output_of(model.op(end - 1))),
                       other.workspace(0).tensor(other.plan(), Pass::main, output)));
      streamed += end > op + 1 ? 1 : 0;
    }
  }
  CHECK(streamed > 100);
}

TEST_CASE("compact plans keep what every layer's queries read, and overlap nowhere") {
  RandomSource random(72);
  int64_t compact_bytes = 0, usual_bytes = 0;
  for (int i = 0; i < 200; ++i) {
    CAPTURE(i);
    const OwnedModel model(any_network(random));
    const std::vector<int32_t> layers = trainable_layers(model);
    std::vector<int32_t> nodes;
    for (size_t k = 0; k < layers.size(); ++k) nodes.push_back(random.integer(0, 1));
    std::vector<int32_t> table(static_cast<size_t>(Plan::table_size(model)));
    Plan plan;
    const std::vector<int32_t> scratch(static_cast<size_t>(model.op_count()), 40);
    std::vector<int32_t> tiles;
    for (size_t k = 0; k < layers.size(); ++k) tiles.push_back(random.pick<int32_t>({0, 24, 500}));
    const auto count = static_cast<int32_t>(layers.size());
    plan.make_compact(model, layers.data(), count, {nodes.data(), scratch.data(), tiles.data(), true}, table.data());
    const int32_t bytes = plan.bytes();
    std::vector<int32_t> usual_table(table.size());
    Plan usual;
    usual.make(model, layers.data(), count, QueryMemory::shared, usual_table.data());
    compact_bytes += bytes;
    usual_bytes += usual.bytes();
    for (const int32_t layer : layers) {
      plan.place_queries(layer);
      CHECK(plan.is_free_of_overlaps());
    }
    CHECK(plan.bytes() == bytes);
  }
  CHECK(3 * compact_bytes < 2 * usual_bytes);
}

TEST_CASE("what a card says of streams is checked") {
  RandomSource random(73);
  const OwnedModel model(random_bottlenecks(random, 3));
  const std::vector<int32_t> layers = {model.op_count() - 1};
  const int32_t inputs = 0;
  const std::vector<int32_t> scratch(static_cast<size_t>(model.op_count()), 16);
  std::vector<int32_t> table(static_cast<size_t>(Plan::table_size(model)));
  Plan plan;
  const auto code = [&](std::vector<StreamedOps> streams, bool may = true) {
    const Plan::Compact compact = {&inputs, scratch.data(), &inputs,
                                   may,     streams.data(), static_cast<int32_t>(streams.size())};
    return plan.make_compact(model, layers.data(), 1, compact, table.data()).code;
  };
  REQUIRE(plan.make_compact(model, layers.data(), 1, {&inputs, scratch.data(), &inputs, true}, table.data()).ok());
  const std::vector<StreamedOps> found = streams_of(plan, model);
  REQUIRE(!found.empty());
  const int32_t bytes = plan.bytes();
  CHECK(code(found) == Code::ok);
  CHECK(plan.bytes() == bytes);
  const StreamedOps first = found[0];
  const int32_t last = model.op_count() - 1;
  CHECK(code(found, false) == Code::plan_streams);
  CHECK(code({{first.begin, first.begin, 1}}) == Code::plan_streams);  // an op alone
  CHECK(code({{-1, first.end, 1}}) == Code::plan_streams);
  CHECK(code({{first.begin, first.end, 0}}) == Code::plan_streams);
  CHECK(code({{first.begin, first.end, 17}}) == Code::plan_streams);
  CHECK(code({{first.end, INT32_MAX, 1}}) == Code::plan_streams);
  CHECK(code({{last - 1, last, 1}}) == Code::plan_streams);  // the logits
  CHECK(code({first, first}) == Code::plan_streams);
}
