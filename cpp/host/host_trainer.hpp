// The core's Trainer with its arena, threads and in-memory samples.
#pragma once

#include <atomic>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "core/train/trainer.hpp"
#include "host/host_model.hpp"
#include "host/sample_array.hpp"
#include "host/team.hpp"

namespace pmt::host {

// Rows of logits, all of one of the samples of a step.
struct LogitBlock {
  const SampleArray* samples;
  int32_t sample;
  const float* logits;
  int32_t rows;
};

// Writes a fixed-point loss for each row. Threads call it at once; it may throw.
using OwnLoss = std::function<void(const LogitBlock& block, int32_t* losses)>;

// A loss of the caller's own behind the core's plain function pointer: what it throws waits here until the core has
// left the step.
class HostLoss {
 public:
  explicit HostLoss(OwnLoss loss) : loss_(std::move(loss)) {}

  bool empty() const { return loss_ == nullptr; }
  LossFunction function() { return {this, call}; }

  // Before a step on these samples.
  void begin(const SampleArray& samples);
  // Throws what the loss threw first, if it threw.
  void rethrow();

 private:
  static bool call(void* context, const float* logits, int32_t count, int32_t sample, int32_t* losses);

  OwnLoss loss_;
  SampleArray samples_ = {};
  std::atomic<bool> failed_{false};
  std::mutex mutex_;
  std::exception_ptr thrown_;
};

class HostTrainer {
 public:
  // The trainer shares the model, whose weights it trains in place. `loss` goes with Loss::function.
  HostTrainer(std::shared_ptr<HostModel> model, const TrainerOptions& options, std::vector<int32_t> layers,
              int32_t batch, int32_t threads, OwnLoss loss = nullptr);

  StepResult step(uint32_t step, float learning_rate, const SampleArray& samples, std::function<bool()> should_stop);
  // The mean loss's gradient by the stored integers: weights in the layer's memory order, biases.
  struct Gradient {
    std::vector<float> weights, bias;
  };
  Gradient estimate(uint32_t step, int32_t index, const SampleArray& samples, std::function<bool()> should_stop);
  // The fixed-point loss of each sample, of logits [sample][class]; no image is read.
  std::vector<int64_t> losses(const float* logits, const SampleArray& samples);

  // -log of the mean prediction, where the loss looks at it. Refuses what cannot be such values; the old ones
  // then stay.
  std::vector<float> surprisal() const;
  void restore_surprisal(const float* values, size_t count);

  std::vector<Layer> layers() const;
  int32_t steps_begun() const;
  const Model& model() const { return model_->model(); }
  size_t arena_bytes() const { return trainer_.bytes_needed(); }
  int32_t threads() const { return team_->threads(); }

 private:
  std::vector<float> kept_state() const;
  // Throws what a loss function threw, or the status if it is not ok.
  void check_step(const Status& status);

  std::shared_ptr<HostModel> model_;
  TrainerOptions options_;
  std::vector<int32_t> layers_;
  std::vector<LayerStorage> storage_;
  int32_t batch_;
  std::function<bool()> should_stop_;
  std::unique_ptr<Team> team_;
  HostLoss loss_;
  LossFunction loss_function_;
  AlignedMemory memory_;
  Trainer trainer_;
};

}  // namespace pmt::host
