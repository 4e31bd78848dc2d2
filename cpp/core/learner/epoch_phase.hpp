// Epochs of perturbed forwards in steps: the queries of one sample each, or an update of all layers.
#pragma once

#include "core/learner/learner_samples.hpp"
#include "core/learner/learner_state.hpp"
#include "core/train/trainer.hpp"

namespace pmt {

// What an application, or an export, has chosen to train and how; no blocks: nothing.
struct EpochSetup {
  const TrainerOptions* options;
  TrainedBlocks layers;  // of more than one block, an epoch of each shows which one is trained
  int32_t batch, epochs;
  float learning_rate;        // of the first step
  float final_learning_rate;  // as a fraction of it, see learn/schedule.hpp
};

class EpochPhase {
 public:
  // Enough memory for open() to tell the exact need.
  static size_t table_bytes(const Model& model, const EpochSetup& setup) {
    return Trainer::table_bytes(model, setup.layers.most_layers());
  }

  // Trains a block. The model is in the state that the training begins with. `memory` must be 16-byte aligned and
  // outlive the phase.
  Status open(const EpochSetup& setup, int32_t block, const Model& model, const Kernels& kernels,
              const LearnerSamples& samples, const LayerStorage* storage, void* memory, size_t bytes);
  size_t bytes_needed() const { return needed_; }
  size_t bytes_on_device() const { return on_device_; }
  Status step(bool* done);

  // Activations of the trainer, in which passes of others may run between two steps.
  uint8_t* activations() const { return trainer_.workspace(0).activations; }
  size_t activation_bytes() const { return static_cast<size_t>(trainer_.plan().bytes()); }

 private:
  static bool read_sample(void* context, int32_t index, int8_t* image, int32_t* label);
  static bool read_target(void* context, int32_t index, float* target);
  const SampleRecord& record(int32_t index) const { return (*samples_)[order_[batch_begin() + index]]; }
  void order_samples();
  int32_t batch_begin() const { return step_ % steps_per_epoch() * setup_.batch; }
  int32_t batch_samples() const;
  int32_t steps_per_epoch() const { return (count_ + setup_.batch - 1) / setup_.batch; }

  EpochSetup setup_ = {};
  const LearnerSamples* samples_ = nullptr;
  bool is_binary_ = false;
  Trainer trainer_;
  uint8_t* stage_ = nullptr;  // memory of the input stage
  int32_t* order_ = nullptr;  // samples of the epoch
  int32_t count_ = 0, step_ = 0, sample_ = 0;
  size_t needed_ = 0, on_device_ = 0;
  Status read_ = {};
};

}  // namespace pmt
