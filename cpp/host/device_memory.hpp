// The memory of training on a device: its kernels, one worker, one query at a time in the gaps of
// the main pass. Nothing is run.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "core/train/trainer.hpp"
#include "host/host_model.hpp"

namespace pmt::host {

// An op while a layer is queried, or in the main pass, where the layer is -1.
struct PlanMoment {
  int32_t layer, op;
};

// The ops that stream.
std::vector<StreamedOps> streams_of(const Plan& plan, const Model& model);

class DeviceMemory {
 public:
  // `streams` are the ops that stream; without them they are searched.
  DeviceMemory(std::shared_ptr<HostModel> model, const TrainerOptions& options, std::vector<int32_t> layers,
               int32_t batch, const Kernels& kernels = arm_dsp_kernels(),
               std::optional<std::vector<StreamedOps>> streams = std::nullopt);
  // The trainer has pointers to what is here.
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;

  const Model& model() const { return model_->model(); }
  const Plan& plan() const { return plan_; }
  const Trainer& trainer() const { return trainer_; }
  // Gives the tensors of a layer's queries their places in the plan, instead of another layer's.
  void place_queries(int32_t layer) { plan_.place_queries(layer); }
  // The first moment at which the most bytes are alive, of the main pass and the queries of these layers.
  PlanMoment peak(const std::vector<int32_t>& layers);
  // The device's arena: the trainer's memory, and what the device takes ahead of it.
  MemoryCount parts() const;
  // The trainer's arena alone, with this machine's size of pointers.
  size_t arena_bytes() const { return trainer_.bytes_needed(); }
  std::vector<StreamedOps> segments() const { return streams_of(plan_, model()); }

 private:
  TrainerSetup setup(int32_t batch, const Kernels& kernels) const;

  std::shared_ptr<HostModel> model_;
  TrainerOptions options_;
  std::vector<int32_t> layers_;
  std::vector<LayerStorage> storage_;  // of nothing
  std::optional<std::vector<StreamedOps>> streams_;
  AlignedMemory tables_;
  Trainer trainer_;
  Plan plan_;  // the trainer's, in the same table
};

}  // namespace pmt::host
