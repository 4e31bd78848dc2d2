// Where the sums of a layer's gradient lie: whole layers for every worker; on a device a group of channels
// for a batch, or no memory of its own where activations leave room.
#pragma once

#include "core/train/step_memory.hpp"
#include "core/zo/gradient.hpp"

namespace pmt {

// Output channels begin .. end-1 of a layer, whose gradient is summed up at once.
struct ChannelGroup {
  int32_t begin, end;
};

class GradientMemory {
 public:
  // Takes it of the arena or reserves it in the plan.
  void open(Arena& arena, StepMemory& memory);

  bool lies_in_gaps() const { return memory_->setup.compact && memory_->setup.batch == 1; }
  int32_t channels_at_once(const Layer& layer) const;

  // The sums of a worker; a group's end may lie after the last channel.
  GradientSums sums(int32_t worker, const Layer& layer, const ChannelGroup& channels) const;
  void clear(int32_t worker, const Layer& layer, const ChannelGroup& channels) const;
  // Adds the other workers' sums to the first's.
  void join(const Layer& layer, const ChannelGroup& channels) const;
  // The first worker's sums, with the free nodes of all.
  GradientSums joined(const Layer& layer, const ChannelGroup& channels) const;

  // Free nodes of a worker's samples; counted where gradient-norm scaling needs them.
  bool counts_free_nodes() const { return free_nodes_ != nullptr; }
  int64_t& free_nodes(int32_t worker) const { return free_nodes_[worker]; }

  // Compact: of a sample, one per class.
  int32_t* head_gradient(int32_t sample) const { return head_gradients_ + int64_t{sample} * classes(); }

 private:
  int32_t classes() const { return memory_->setup.model->classes(); }
  int64_t* first_sum(int32_t worker, const Layer& layer) const;
  int64_t count(const Layer& layer, const ChannelGroup& channels) const;

  const StepMemory* memory_ = nullptr;
  int64_t* sums_ = nullptr;        // [worker][weights, then bias]
  int64_t sum_count_ = 0;          // of a worker
  int64_t* free_nodes_ = nullptr;  // [worker]
  int32_t* head_gradients_ = nullptr;
};

}  // namespace pmt
