#include "core/train/loss_tables.hpp"

#include "core/base/arithmetic.hpp"

namespace pmt {

void LossTables::open(Arena& arena, const StepMemory& memory) {
  memory_ = &memory;
  int64_t entries = 0;
  for (int32_t t = 0; t < count(); ++t) {
    memory.loss_starts[t] = entries;
    entries += int64_t{queries(t)} * (adds_up(t) ? memory.workers() : memory.setup.batch);
  }
  losses_ = arena.take<int32_t>(MemoryPart::tables, entries);
  averages_ = arena.take<int32_t>(MemoryPart::tables, memory.is_coordinate_wise() ? 0 : most_queries());
  clean_ = arena.take<CleanLoss>(MemoryPart::tables, memory.setup.batch);
  prediction_.open(arena, memory);
}

int32_t LossTables::queries(int32_t table) const {
  const Layer& layer = memory_->layers[table];
  return memory_->is_layer_wise() && layer.estimator == Estimator::closed_form ? 0 : layer.queries;
}

int32_t LossTables::most_queries() const {
  int32_t most = 0;
  for (int32_t t = 0; t < count(); ++t) most = most < queries(t) ? queries(t) : most;
  return most;
}

bool LossTables::adds_up(int32_t table) const {
  return memory_->is_coordinate_wise() && memory_->layers[table].estimator == Estimator::weight_perturbation;
}

int32_t* LossTables::row(int32_t table, int32_t index) const {
  return losses_ + memory_->loss_starts[table] + static_cast<int64_t>(index) * queries(table);
}

void LossTables::clear_sums() {
  prediction_.clear();
  for (int32_t table = 0; table < count(); ++table) {
    if (!adds_up(table)) continue;
    int32_t* rows = row(table, 0);
    const int64_t entries = int64_t{queries(table)} * memory_->workers();
    for (int64_t i = 0; i < entries; ++i) rows[i] = 0;
  }
}

// Each difference is bounded so that the sum over a batch fits int32.
void LossTables::add(int32_t table, int32_t worker, int32_t first, int32_t count, const int32_t* losses,
                     int32_t clean) {
  const int32_t bound = INT32_MAX / memory_->setup.batch;
  int32_t* sums = row(table, worker) + first;
  for (int32_t i = 0; i < count; ++i) {
    const int64_t difference = int64_t{losses[i]} - clean;
    sums[i] += static_cast<int32_t>(difference > bound ? bound : (difference < -bound ? -bound : difference));
  }
}

void LossTables::join_sums(int32_t table) {
  int32_t* total = row(table, 0);
  for (int32_t w = 1; w < memory_->workers(); ++w) {
    const int32_t* sums = row(table, w);
    for (int32_t q = 0; q < queries(table); ++q) total[q] += sums[q];
  }
}

int64_t LossTables::baseline(const int32_t* losses, int32_t queries, int32_t sample) const {
  if (memory_->options.baseline == Baseline::clean || memory_->is_coordinate_wise()) return clean_[sample].loss;
  int64_t sum = 0;
  for (int32_t q = 0; q < queries; ++q) sum += losses[q];
  return divide_rounded(sum, queries);
}

void LossTables::to_differences(int32_t samples) {
  for (int32_t table = 0; table < count(); ++table) {
    const int32_t queries = this->queries(table);
    if (queries == 0) continue;
    if (adds_up(table)) {
      join_sums(table);
      continue;
    }
    const int32_t bound = memory_->is_coordinate_wise() ? INT32_MAX : INT32_MAX / queries;
    for (int32_t n = 0; n < samples; ++n) {
      int32_t* losses = row(table, n);
      const int64_t compared = baseline(losses, queries, n);
      for (int32_t q = 0; q < queries; ++q) {
        const int64_t difference = losses[q] - compared;
        losses[q] = static_cast<int32_t>(difference > bound ? bound : (difference < -bound ? -bound : difference));
      }
    }
  }
}

void LossTables::average(int32_t table, int32_t samples) {
  for (int32_t q = 0; q < queries(table); ++q) {
    int64_t sum = 0;
    for (int32_t n = 0; n < samples; ++n) sum += row(table, n)[q];
    averages_[q] = static_cast<int32_t>(divide_rounded(sum, samples));
  }
}

}  // namespace pmt
