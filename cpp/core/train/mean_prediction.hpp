// The mean of a batch's predictions, softmax of the clean logits, for losses of the next step that look at it.
// Integers, a row of sums for each worker.
#pragma once

#include "core/train/step_memory.hpp"

namespace pmt {

class MeanPrediction {
 public:
  // Takes no memory, and does nothing, where the options keep no prediction.
  void open(Arena& arena, const StepMemory& memory);
  void clear();
  void add(int32_t worker, const float* logits);
  // -log of the mean over so many samples, one a class, at most -log 2^-20.
  void write_surprisal(int32_t samples, float* surprisal) const;

 private:
  int32_t classes() const { return memory_->setup.model->classes(); }
  int64_t entries() const { return int64_t{memory_->workers()} * classes(); }

  const StepMemory* memory_ = nullptr;
  int64_t* sums_ = nullptr;  // [worker][class]
};

}  // namespace pmt
