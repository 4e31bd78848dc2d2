// The losses of a step's queries, a table for each layer (model-wise one for all) with a row for each sample. Then
// the differences, and their averages. And the mean of the batch's predictions, for losses that look at it.
#pragma once

#include "core/train/step_memory.hpp"

namespace pmt {

// A sample's loss without a perturbation.
struct CleanLoss {
  int32_t loss;
  int32_t correct;  // 0 or 1
};

// The mean of a batch's predictions, softmax of the clean logits: -log of it is what the next step's loss looks at.
// It belongs to a checkpoint as much as the weights do. Takes no memory, and does nothing, where the options keep no
// prediction.
class MeanPrediction {
 public:
  void open(Arena& arena, const StepMemory& memory);
  // Before a step.
  void clear_sums() const;
  // The logits of a sample; integers, a row of sums for each worker.
  void add(int32_t worker, const float* logits) const;
  // After a step of `samples` samples.
  void write_surprisal(int32_t samples) const;

  // -log of the mean prediction, one a class, at most -log 2^-20; 0 before the first step. Null where it is not kept.
  float* surprisal() const { return surprisal_; }
  int32_t count() const { return surprisal_ != nullptr ? memory_->setup.model->classes() : 0; }
  // Refuses what no training can have left.
  Status check() const;

 private:
  int64_t entries() const { return int64_t{memory_->workers()} * count(); }

  const StepMemory* memory_ = nullptr;
  int64_t* sums_ = nullptr;  // [worker][class]
  float* surprisal_ = nullptr;
};

class LossTables {
 public:
  void open(Arena& arena, const StepMemory& memory);

  int32_t count() const { return memory_->is_layer_wise() ? memory_->setup.layer_count : 1; }
  int32_t table_of(int32_t layer) const { return memory_->is_layer_wise() ? layer : 0; }
  // Queries that a table holds for each sample; none for a layer whose gradient is exact.
  int32_t queries(int32_t table) const;
  int32_t most_queries() const;
  // The row of a sample: losses, then differences.
  int32_t* row(int32_t table, int32_t sample) const;
  CleanLoss& clean(int32_t sample) const { return clean_[sample]; }
  const MeanPrediction& prediction() const { return prediction_; }

  // loss -> loss - baseline, bounded so that a sum over the queries fits int32.
  void to_differences(int32_t samples);

  // Means over the batch, in averages().
  void average(int32_t table, int32_t samples);
  const int32_t* averages() const { return averages_; }

 private:
  int64_t baseline(const int32_t* losses, int32_t queries, int32_t sample) const;

  const StepMemory* memory_ = nullptr;
  int32_t* losses_ = nullptr;    // [table][sample][query]
  int32_t* averages_ = nullptr;  // [query]
  CleanLoss* clean_ = nullptr;   // [sample]
  MeanPrediction prediction_;
};

}  // namespace pmt
