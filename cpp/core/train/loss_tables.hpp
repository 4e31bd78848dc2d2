// The losses of a step's queries, a table for each layer (model-wise one for all): a row for each sample
// or, where weights are moved one by one, the sum over the batch of each coordinate's difference in a row
// of every worker, for there may be a hundred thousand of them. Then the differences, and their averages.
#pragma once

#include "core/train/mean_prediction.hpp"

namespace pmt {

// A sample's loss without a perturbation.
struct CleanLoss {
  int32_t loss;
  int32_t correct;  // 0 or 1
};

class LossTables {
 public:
  void open(Arena& arena, const StepMemory& memory);

  int32_t count() const { return memory_->is_layer_wise() ? memory_->setup.layer_count : 1; }
  int32_t table_of(int32_t layer) const { return memory_->is_layer_wise() ? layer : 0; }
  // Queries that a table holds for each sample; none for a layer whose gradient is exact.
  int32_t queries(int32_t table) const;
  int32_t most_queries() const;
  // Whether the differences of a batch are added up.
  bool adds_up(int32_t table) const;
  // The row of a sample, or of a worker where the table adds up: losses, then differences.
  int32_t* row(int32_t table, int32_t index) const;
  CleanLoss& clean(int32_t sample) const { return clean_[sample]; }

  // The mean prediction of the samples' clean logits.
  MeanPrediction& prediction() { return prediction_; }

  void clear_sums();
  // Adds the differences of `count` coordinates from `first` on.
  void add(int32_t table, int32_t worker, int32_t first, int32_t count, const int32_t* losses, int32_t clean);

  // loss -> loss - baseline, bounded so that a sum over the queries fits int32. Coordinates have no sum, and
  // no baseline but the clean loss.
  void to_differences(int32_t samples);

  // Means over the batch, in averages().
  void average(int32_t table, int32_t samples);
  const int32_t* averages() const { return averages_; }

 private:
  int64_t baseline(const int32_t* losses, int32_t queries, int32_t sample) const;
  void join_sums(int32_t table);

  const StepMemory* memory_ = nullptr;
  int32_t* losses_ = nullptr;    // [table][sample or worker][query]
  int32_t* averages_ = nullptr;  // [query]
  CleanLoss* clean_ = nullptr;   // [sample]
  MeanPrediction prediction_;
};

}  // namespace pmt
