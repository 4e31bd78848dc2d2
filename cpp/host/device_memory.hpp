// What training takes on a device: its kernels, one worker, one query at a time in the gaps of
// the main pass. Nothing is run.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "core/trainer.hpp"
#include "host/host_model.hpp"

namespace pmt::host {

class DeviceMemory {
 public:
  // `streams` are the ops that stream; without them they are searched.
  DeviceMemory(std::shared_ptr<HostModel> model, const TrainerOptions& options, const std::vector<int32_t>& layers,
               int32_t batch, const std::vector<LayerSettings>& settings, const Kernels& kernels = arm_dsp_kernels(),
               const std::optional<std::vector<StreamedOps>>& streams = std::nullopt);

  const Model& model() const { return model_->model(); }
  const Plan& plan() const { return trainer_.plan(); }
  const Trainer& trainer() const { return trainer_; }
  // With the tensors of a layer's queries at their places.
  Plan plan_of_queries(int32_t layer) const {
    Plan plan = trainer_.plan();
    plan.place_queries(layer);
    return plan;
  }
  // With this machine's size of pointers.
  size_t arena_bytes() const { return trainer_.bytes_needed(); }

 private:
  struct alignas(64) Chunk {
    uint8_t bytes[64];
  };
  std::shared_ptr<HostModel> model_;
  std::vector<Chunk> tables_;
  Trainer trainer_;
};

}  // namespace pmt::host
