// The offsets of compact plans, against the rule applied to every pair of buffers.
#include <doctest/doctest.h>

#include <algorithm>
#include <vector>

#include "core/net/plan.hpp"
#include "tests/image_builder.hpp"
#include "tests/random_bottlenecks.hpp"
#include "tests/random_dag.hpp"

using namespace pmt;
using namespace pmt::tests;

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
