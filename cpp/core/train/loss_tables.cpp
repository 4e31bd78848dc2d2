#include "core/train/loss_tables.hpp"

#include "core/base/arithmetic.hpp"
#include "core/zo/estimated.hpp"
#include "core/zo/loss_units.hpp"

namespace pmt {

void MeanPrediction::open(Arena& arena, const StepMemory& memory) {
  memory_ = &memory;
  if (!keeps_prediction(memory.options)) return;
  const int32_t classes = memory.setup.model->classes();
  sums_ = arena.take<int64_t>(MemoryPart::tables, int64_t{memory.workers()} * classes);
  surprisal_ = arena.take<float>(MemoryPart::tables, classes);
  if (!arena.fits() || arena.measuring()) return;
  for (int32_t c = 0; c < classes; ++c) surprisal_[c] = 0.0f;
}

void MeanPrediction::clear_sums() const {
  for (int64_t i = 0; i < entries(); ++i) sums_[i] = 0;
}

void MeanPrediction::add(int32_t worker, const float* logits) const {
  if (surprisal_ != nullptr) add_prediction(logits, count(), sums_ + int64_t{worker} * count());
}

void MeanPrediction::write_surprisal(int32_t samples) const {
  for (int32_t c = 0; c < count(); ++c) {
    int64_t sum = 0;
    for (int32_t w = 0; w < memory_->workers(); ++w) sum += sums_[int64_t{w} * count() + c];
    surprisal_[c] = surprisal_of(sum, samples);
  }
}

Status MeanPrediction::check() const {
  for (int32_t c = 0; c < count(); ++c) {
    if (!is_finite(surprisal_[c])) return {Code::surprisal};
  }
  return {};
}

void LossTables::open(Arena& arena, const StepMemory& memory) {
  memory_ = &memory;
  int64_t entries = 0;
  for (int32_t t = 0; t < count(); ++t) {
    memory.loss_starts[t] = entries;
    entries += int64_t{queries(t)} * memory.setup.batch;
  }
  losses_ = arena.take<int32_t>(MemoryPart::tables, entries);
  averages_ = arena.take<int32_t>(MemoryPart::tables, most_queries());
  clean_ = arena.take<CleanLoss>(MemoryPart::tables, memory.setup.batch);
  prediction_.open(arena, memory);
}

int32_t LossTables::queries(int32_t table) const {
  const Layer& layer = memory_->layers[table];
  return memory_->is_layer_wise() && is_estimated(layer, Estimator::closed_form) ? 0 : layer.queries;
}

int32_t LossTables::most_queries() const {
  int32_t most = 0;
  for (int32_t t = 0; t < count(); ++t) most = most < queries(t) ? queries(t) : most;
  return most;
}

int32_t* LossTables::row(int32_t table, int32_t sample) const {
  return losses_ + memory_->loss_starts[table] + static_cast<int64_t>(sample) * queries(table);
}

int64_t LossTables::baseline(const int32_t* losses, int32_t queries, int32_t sample) const {
  if (memory_->options.baseline == Baseline::clean) return clean_[sample].loss;
  int64_t sum = 0;
  for (int32_t q = 0; q < queries; ++q) sum += losses[q];
  return divide_rounded(sum, queries);
}

// Not in line: as for the halves of Trainer::step().
__attribute__((noinline)) void LossTables::to_differences(int32_t samples) {
  for (int32_t table = 0; table < count(); ++table) {
    const int32_t queries = this->queries(table);
    if (queries == 0) continue;
    const int32_t bound = INT32_MAX / queries;
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
