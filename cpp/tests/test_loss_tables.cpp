// The tables by themselves: how losses become differences and averages.
#include <doctest/doctest.h>

#include <vector>

#include "core/train/loss_tables.hpp"
#include "tests/aligned_bytes.hpp"

using namespace pmt;
using namespace pmt::tests;

namespace {

// Two samples, three queries of each layer: one of weights, one of nodes, and an exact head.
struct Tables {
  explicit Tables(const TrainerOptions& options) : bytes(1 << 12) {
    for (int32_t i = 0; i < 3; ++i) {
      layers[i].estimator = static_cast<Estimator>(i);
      layers[i].queries = 3;
    }
    memory.options = options;
    memory.setup.layer_count = 3;
    memory.setup.batch = 2;
    memory.setup.executor.workers = 1;
    memory.layers = layers;
    memory.loss_starts = starts;
    Arena arena(bytes.data(), bytes.size());
    losses.open(arena, memory);
    REQUIRE(arena.fits());
  }

  void write(int32_t table, int32_t row, const std::vector<int32_t>& values) const {
    for (size_t q = 0; q < values.size(); ++q) losses.row(table, row)[q] = values[q];
  }
  std::vector<int32_t> read(int32_t table, int32_t row) const {
    const int32_t* first = losses.row(table, row);
    return {first, first + losses.queries(table)};
  }

  AlignedBytes bytes;
  Layer layers[3] = {};
  int64_t starts[3] = {};
  StepMemory memory;
  LossTables losses;
};

using Row = std::vector<int32_t>;

}  // namespace

TEST_CASE("losses become differences from the clean loss, or from the mean of the queries") {
  for (const Baseline baseline : {Baseline::clean, Baseline::leave_one_out}) {
    TrainerOptions options;
    options.baseline = baseline;
    Tables tables(options);
    CHECK(tables.losses.count() == 3);
    CHECK(tables.losses.queries(2) == 0);
    tables.losses.clean(0) = {10, 1};
    tables.losses.clean(1) = {-5, 0};
    tables.write(0, 0, {11, 9, 40});
    tables.write(0, 1, {-5, 0, INT32_MAX});
    tables.write(1, 0, {1, 2, 3});
    tables.write(1, 1, {7, 7, 7});
    tables.losses.to_differences(2);
    const bool clean = baseline == Baseline::clean;
    CHECK(tables.read(0, 0) == (clean ? Row{1, -1, 30} : Row{-9, -11, 20}));
    CHECK(tables.read(0, 1) == (clean ? Row{0, 5, 715827882} : Row{-715827882, -715827881, 715827882}));
    CHECK(tables.read(1, 0) == (clean ? Row{-9, -8, -7} : Row{-1, 0, 1}));
    CHECK(tables.read(1, 1) == (clean ? Row{12, 12, 12} : Row{0, 0, 0}));
    tables.losses.average(1, 2);
    CHECK(tables.losses.averages()[0] == (clean ? 2 : -1));
  }
}

TEST_CASE("model-wise one table is all layers'") {
  TrainerOptions options;
  options.scope = Scope::model_wise;
  const Tables tables(options);
  CHECK(tables.losses.count() == 1);
  CHECK(tables.losses.table_of(2) == 0);
  CHECK(tables.losses.queries(0) == 3);
}
