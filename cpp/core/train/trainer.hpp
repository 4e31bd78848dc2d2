// One training step: Algorithm 1 of the paper, on one arena and without a heap.
//
// The step is made of tasks (a sample, a range of its queries) whose results are integers in a
// table, so their order and the number of workers cannot change a bit. All layers are estimated on
// the weights from before the step (a global update); the updates come at the end, last layer
// first, because a layer's node gradient needs the activations that the old earlier layers give.
// For the same reason a step that is cancelled leaves the weights untouched.
#pragma once

#include "core/train/gradient_memory.hpp"
#include "core/train/loss_tables.hpp"
#include "core/zo/update.hpp"

namespace pmt {

struct StepResult {
  int64_t loss_sum;  // over the samples, before the update; fixed-point, see loss_units.hpp
  int32_t correct;   // samples classified correctly before the update
  int32_t changed;   // weights that changed
};

class Trainer {
 public:
  // Enough memory for open() to tell the exact need through bytes_needed().
  static size_t table_bytes(const Model& model, int32_t layer_count) {
    return StepMemory::table_bytes(model, layer_count);
  }

  // `memory` must be 16-byte aligned and outlive the trainer, which stays where it is.
  Status open(const TrainerSetup& setup, void* memory, size_t bytes);
  size_t bytes_needed() const { return arena_.used(); }
  // The same by part, as a device has them.
  const MemoryCount& memory_count() const { return arena_; }
  size_t bytes_on_device() const { return device_bytes(arena_); }

  // A sample that can be read at first and not again, for its gradient, leaves the layers after the
  // failing one updated: the caller goes back to its checkpoint.
  Status step(uint32_t step, float learning_rate, int32_t samples, const SampleSource& source, StepResult* result);

  // The same in parts, for a caller that does something else in between, with one worker: query() for each of the
  // samples in order, then update(). Between two calls the workspace's activations hold nothing.
  Status query(uint32_t step, int32_t sample, int32_t samples, const SampleSource& source);
  Status update(float learning_rate, int32_t samples, const SampleSource& source, StepResult* result);

  // The first half of step(): fills the tables and the gradient sums of one layer, changes nothing.
  // For studies: the gradient of the mean loss by the stored integers is sum * gradient_factors().
  Status estimate(uint32_t step, int32_t samples, const SampleSource& source, int32_t layer);
  GradientSums sums() const { return gradients_.joined(*estimated_, {0, estimated_->channels}); }
  // Channels of a layer that are summed up at once.
  int32_t channels_at_once(const Layer& layer) const { return gradients_.channels_at_once(layer); }
  UpdateInput update_input(const Layer& layer, float learning_rate, int32_t samples) const;

  // For checkpoints. Its surprisal, written before the first step, is where training goes on from, once check()
  // has found nothing in it that no training can have left.
  const MeanPrediction& prediction() const { return losses_.prediction(); }
  // Steps whose updates have begun.
  int32_t steps_begun() const { return steps_begun_; }

  const Layer& layer(int32_t index) const { return memory_.layers[index]; }
  int32_t layer_count() const { return memory_.setup.layer_count; }
  const StepContext& context() const { return memory_.context; }
  const Plan& plan() const { return memory_.plan; }
  const Network& network() const { return memory_.network; }
  const Workspace& workspace(int32_t worker) const { return memory_.workspaces[worker]; }

 private:
  Status update_layer(int32_t index, float learning_rate, int32_t samples, const SampleSource& source,
                      int32_t* changed);

  Arena arena_;
  StepMemory memory_;
  LossTables losses_;
  GradientMemory gradients_;
  const Layer* estimated_ = nullptr;
  int32_t steps_begun_ = 0;
};

}  // namespace pmt
