#include <doctest/doctest.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "core/net/plan.hpp"
#include "tests/image_builder.hpp"
#include "tests/random_network.hpp"

using namespace pmt;
using namespace pmt::tests;

namespace {

// conv2d 4x4x3 -> 4x4x8, depthwise -> 4x4x8, fully_connected -> 10.
AlignedBytes small_chain() {
  ImageBuilder builder({{4, 4, 3}, {4, 4, 8}, {4, 4, 8}, {1, 1, 10}});
  builder.add_op(plain_op(OpKind::conv2d, 0, 1), constant_data(24, 8));
  builder.add_op(plain_op(OpKind::depthwise_conv2d, 1, 2), constant_data(8, 8));
  builder.add_op(plain_op(OpKind::fully_connected, 2, 3), constant_data(1280, 10));
  return builder.build();
}

// conv2d 4x4x4 -> 4x4x8, conv2d -> 4x4x4, add the input, mean.
AlignedBytes residual_block() {
  ImageBuilder builder({{4, 4, 4}, {4, 4, 8}, {4, 4, 4}, {4, 4, 4}, {1, 1, 4}});
  builder.add_op(plain_op(OpKind::conv2d, 0, 1), constant_data(32, 8));
  builder.add_op(plain_op(OpKind::conv2d, 1, 2), constant_data(32, 4));
  builder.add_op(join_op(OpKind::add, 2, 0, 3));
  builder.add_op(plain_op(OpKind::mean, 3, 4));
  return builder.build();
}

std::vector<int32_t> random_layers(RandomSource& random, const Model& model) {
  std::vector<int32_t> layers;
  const int32_t one_in = random.integer(1, 4);
  for (int32_t i = 0; i < model.op_count(); ++i) {
    if (has_weights(model.op(i)) && random.chance(one_in)) layers.push_back(i);
  }
  return layers;
}

// Runs the pass on stamps instead of numbers: every buffer carries the name of what was written
// last into each byte, and whoever reads a tensor must find that tensor whole. Queries apart from the
// main pass run several at once.
class StampedPass {
 public:
  StampedPass(const Model& model, const Plan& plan, int32_t at_once)
      : model_(model), plan_(plan), at_once_(at_once), stamps_(static_cast<size_t>(plan.bytes()), -1) {
    if (plan.query_memory() == QueryMemory::apart) queries_ = plan.bytes();
  }

  bool run(const std::vector<int32_t>& layers) {
    write(Pass::main, model_.header().input_tensor, 0);
    int32_t done = 0;
    for (const int32_t layer : layers) {
      for (; done <= layer; ++done) run_main(done);
      if (queries_ > 0) stamps_.resize(static_cast<size_t>(queries_ + at_once_ * plan_.query_bytes(layer)), -1);
      for (int32_t first = 1; first <= 2 * at_once_; first += at_once_) run_queries(layer, first);
    }
    for (; done < model_.op_count(); ++done) run_main(done);
    read(Pass::main, model_.header().output_tensor, 0);
    return whole_;
  }

 private:
  void run_main(int32_t index) {
    const OpRecord& op = model_.op(index);
    write(Pass::main, op.output, 0);  // before the reads: an op must not write over its inputs
    for (const uint32_t input : op.input) {
      if (input != no_tensor) read(Pass::main, input, 0);
    }
  }

  void run_queries(int32_t layer, int32_t first) {
    read(Pass::main, model_.op(layer).output, 0);  // node perturbation starts from it
    for (int32_t i = layer; i < model_.op_count(); ++i) {
      for (int32_t query = first; query < first + at_once_; ++query) run_query_op(layer, i, query);
    }
  }

  void run_query_op(int32_t layer, int32_t index, int32_t query) {
    const OpRecord& op = model_.op(index);
    write(Pass::query, op.output, query);
    for (const uint32_t input : op.input) {
      if (input == no_tensor) continue;
      const bool own = model_.producer(input) >= layer;
      read(own ? Pass::query : Pass::main, input, own ? query : 0);
    }
  }

  int64_t stamp(Pass pass, uint32_t tensor, int32_t query) const {
    return (static_cast<int64_t>(pass) * 100 + query) * model_.tensor_count() + tensor;
  }

  void write(Pass pass, uint32_t tensor, int32_t query) {
    for (int64_t& byte : bytes(pass, tensor, query)) byte = stamp(pass, tensor, query);
  }

  void read(Pass pass, uint32_t tensor, int32_t query) {
    for (const int64_t& byte : bytes(pass, tensor, query)) whole_ = whole_ && byte == stamp(pass, tensor, query);
  }

  struct Range {
    int64_t *first, *last;
    int64_t* begin() const { return first; }
    int64_t* end() const { return last; }
  };
  Range bytes(Pass pass, uint32_t tensor, int32_t query) {
    const auto index = static_cast<int32_t>(tensor);
    int64_t start = plan_.offset(pass, index);
    if (pass == Pass::query) {
      start = queries_ + start * at_once_ + static_cast<int64_t>((query - 1) % at_once_) * plan_.size(index);
    }
    int64_t* first = stamps_.data() + start;
    return {first, first + element_count(model_.tensor(index))};
  }

  const Model& model_;
  const Plan& plan_;
  const int32_t at_once_;
  int64_t queries_ = 0;  // where the queries' memory starts
  std::vector<int64_t> stamps_;
  bool whole_ = true;
};

// A network and its plan.
struct Planned {
  explicit Planned(AlignedBytes network)
      : model(std::move(network)), table(static_cast<size_t>(Plan::table_size(model))) {}

  void make(std::vector<int32_t> under_training, QueryMemory memory = QueryMemory::shared) {
    layers = std::move(under_training);
    plan.make(model, layers.data(), static_cast<int32_t>(layers.size()), memory, table.data());
  }
  // Of the tensors of the main pass and of queries.
  std::vector<int32_t> offsets() const {
    std::vector<int32_t> all;
    for (const Pass pass : {Pass::main, Pass::query}) {
      for (int32_t i = 0; i < model.tensor_count(); ++i) all.push_back(plan.offset(pass, i));
    }
    return all;
  }

  OwnedModel model;
  std::vector<int32_t> table, layers;
  Plan plan;
};

void check_plan(RandomSource& random, AlignedBytes image) {
  Planned planned(std::move(image));
  const std::vector<int32_t> layers = random_layers(random, planned.model);
  for (const QueryMemory memory : {QueryMemory::shared, QueryMemory::apart}) {
    planned.make(layers, memory);
    CHECK(planned.plan.is_free_of_overlaps());
    CHECK(StampedPass(planned.model, planned.plan, memory == QueryMemory::apart ? 3 : 1).run(layers));
    for (const int32_t offset : planned.offsets()) CHECK(offset % 16 == (offset < 0 ? -1 : 0));
  }
}

}  // namespace

TEST_CASE("the plan of a small net, byte for byte") {
  Planned planned(small_chain());
  planned.make({});
  CHECK(planned.plan.bytes() == 256);
  CHECK(planned.offsets() == std::vector<int32_t>{128, 0, 128, 0, -1, -1, -1, -1});

  planned.make({1});  // while op 1 is queried, its input and output stay
  CHECK(planned.plan.bytes() == 400);
  CHECK(planned.offsets() == std::vector<int32_t>{128, 0, 128, 0, -1, -1, 256, 384});
  CHECK(planned.plan.is_free_of_overlaps());
}

TEST_CASE("the plan of a residual block, byte for byte") {
  Planned planned(residual_block());
  planned.make({});
  // The input stays beside both convolutions until the addition has read it.
  CHECK(planned.offsets() == std::vector<int32_t>{128, 0, 192, 0, 64, -1, -1, -1, -1, -1});
  CHECK(planned.plan.bytes() == 256);

  planned.make({0, 1});
  // While op 1 is queried, the input, the wide tensor and the clean output of op 1 stay (256..319,
  // 0..127, 128..191); the queries' wide tensor is op 0's alone and may lie on that clean output.
  CHECK(planned.offsets() == std::vector<int32_t>{256, 0, 128, 0, 64, -1, 128, 320, 192, 320});
  CHECK(planned.plan.bytes() == 384);
  CHECK(planned.plan.is_free_of_overlaps());
}

TEST_CASE("queries apart from the main pass only need what their own suffix makes") {
  Planned planned(small_chain());
  planned.make({0, 1}, QueryMemory::apart);
  // The main pass as in inference; of the queries 4x4x8 twice, and 10 classes over the first.
  CHECK(planned.offsets() == std::vector<int32_t>{128, 0, 128, 0, -1, 0, 128, 0});
  CHECK(planned.plan.bytes() == 256);
  CHECK(planned.plan.query_bytes(0) == 256);
  CHECK(planned.plan.query_bytes(1) == 256);
  CHECK(planned.plan.query_bytes(2) == 16);
}

TEST_CASE("an overlap in the table is found") {
  Planned planned(small_chain());
  planned.make({1});
  const std::vector<int32_t> good = planned.table;
  const auto moved = [&](Pass pass, int32_t tensor, int32_t offset) {
    std::copy(good.begin(), good.end(), planned.table.begin());
    const int32_t first = static_cast<int32_t>(pass) * (planned.model.tensor_count() + planned.model.op_count() + 1);
    planned.table[static_cast<size_t>(first + tensor)] = offset;
    return planned.plan.is_free_of_overlaps();
  };
  CHECK(moved(Pass::main, 2, 128));    // as planned
  CHECK(!moved(Pass::main, 2, 112));   // 16 bytes into the input of its own op
  CHECK(!moved(Pass::query, 2, 128));  // the query's output on the main pass's output
  CHECK(!moved(Pass::query, 3, 256));  // the query's logits on their own input
  CHECK(moved(Pass::main, 0, 256));    // the network's input is dead when the query runs
}

TEST_CASE("plans of random networks and layer sets lose no tensor") {
  RandomSource random(22);
  for (int i = 0; i < 200; ++i) {
    CAPTURE(i);
    const Head head = random.pick<Head>({Head::fully_connected, Head::conv2d, Head::pool});
    check_plan(random, random_network(random, random.integer(0, 8), head));
  }
}

TEST_CASE("plans of networks with many readers, far apart, lose no tensor") {
  RandomSource random(23);
  for (int i = 0; i < 200; ++i) {
    CAPTURE(i);
    check_plan(random, random_dag(random, random.integer(1, 14)));
  }
}

// The offsets of compact plans, against the rule applied to every pair of buffers.
namespace {

struct Buffer {
  int32_t first, last, offset, bytes;
};

bool share_memory(const Buffer& a, const Buffer& b) {
  return a.offset < b.offset + b.bytes && b.offset < a.offset + a.bytes;
}
bool share_time(const Buffer& a, const Buffer& b) { return a.first <= b.last && b.first <= a.last; }

Buffer buffer_of(const Plan& plan, Pass pass, int32_t tensor) {
  Buffer buffer = {0, 0, plan.offset(pass, tensor), plan.size(tensor)};
  plan.lifetime(tensor, &buffer.first, &buffer.last);
  return buffer;
}

// The lowest offset at which a buffer meets none of the others that are alive with it.
int32_t lowest_offset(Buffer buffer, const std::vector<Buffer>& others) {
  for (buffer.offset = 0;; buffer.offset += 16) {
    const auto meets = [&](const Buffer& other) { return share_time(buffer, other) && share_memory(buffer, other); };
    if (std::none_of(others.begin(), others.end(), meets)) return buffer.offset;
  }
}

// Whether the tensors of a pass, the largest first, each have the lowest offset free, beside what is `kept`.
bool first_fit(const Model& model, const Plan& plan, Pass pass, std::vector<Buffer> placed) {
  std::vector<int32_t> tensors;
  for (int32_t i = 0; i < model.tensor_count(); ++i) {
    if (plan.offset(pass, i) >= 0) tensors.push_back(i);
  }
  std::stable_sort(tensors.begin(), tensors.end(), [&](int32_t a, int32_t b) { return plan.size(a) > plan.size(b); });
  return std::all_of(tensors.begin(), tensors.end(), [&](int32_t tensor) {
    placed.push_back(buffer_of(plan, pass, tensor));
    const std::vector<Buffer> before(placed.begin(), placed.end() - 1);
    return lowest_offset(placed.back(), before) == placed.back().offset;
  });
}

// Tensors of the main pass that a layer's queries leave alone, at every op.
std::vector<Buffer> kept_buffers(const Model& model, const Plan& plan, int32_t layer) {
  std::vector<Buffer> kept;
  for (int32_t i = 0; i < model.tensor_count(); ++i) {
    if (plan.kept(i, layer)) kept.push_back({0, INT32_MAX, plan.offset(Pass::main, i), plan.size(i)});
  }
  return kept;
}

void check_placement(RandomSource& random, AlignedBytes image) {
  const OwnedModel model(std::move(image));
  std::vector<int32_t> layers, nodes;
  for (int32_t i = 0; i < model.op_count(); ++i) {
    if (!has_weights(model.op(i)) || random.chance(4)) continue;
    layers.push_back(i);
    nodes.push_back(random.integer(0, 1));
  }
  const std::vector<int32_t> scratch(static_cast<size_t>(model.op_count())), tiles(layers.size());
  std::vector<int32_t> table(static_cast<size_t>(Plan::table_size(model)));
  Plan plan;
  const Plan::Compact compact = {nodes.data(), scratch.data(), tiles.data(), random.chance(2)};
  REQUIRE(plan.make_compact(model, layers.data(), static_cast<int32_t>(layers.size()), compact, table.data()).ok());
  CHECK(first_fit(model, plan, Pass::main, {}));
  for (const int32_t layer : layers) {
    plan.place_queries(layer);
    CHECK(first_fit(model, plan, Pass::query, kept_buffers(model, plan, layer)));
  }
}

}  // namespace

TEST_CASE("every buffer of a compact plan has the lowest offset that larger ones leave free") {
  RandomSource random(150);
  for (int i = 0; i < 200; ++i) {
    CAPTURE(i);
    check_placement(random, random_dag(random, random.integer(1, 30)));
    check_placement(random, random_bottlenecks(random, random.integer(1, 5)));
  }
}

TEST_CASE("tensors that no op makes or reads have a place, and the table has room") {
  ImageBuilder builder({{4, 4, 4}, {1, 1, 4}});
  for (int i = 0; i < 40; ++i) builder.add_tensor({2, 2, 4});
  builder.add_op(plain_op(OpKind::mean, 0, 1));
  const OwnedModel model(builder.build());
  std::vector<int32_t> table(static_cast<size_t>(Plan::table_size(model)));
  Plan plan;
  const int32_t scratch = 0;
  REQUIRE(plan.make_compact(model, nullptr, 0, {nullptr, &scratch, nullptr, true}, table.data()).ok());
  plan.make(model, nullptr, 0, QueryMemory::shared, table.data());
  CHECK(plan.is_free_of_overlaps());
  CHECK(plan.bytes() == 64 + 16 + 40 * 16);
}
