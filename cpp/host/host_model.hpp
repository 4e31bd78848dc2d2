// A model that owns its image, aligned and writable: training changes the weights in place.
#pragma once

#include <cstdint>
#include <vector>

#include "core/align/channel_statistics.hpp"
#include "core/image/model.hpp"
#include "core/kernels/table.hpp"
#include "core/net/network.hpp"
#include "core/net/plan.hpp"
#include "core/zo/layer.hpp"
#include "host/access.hpp"
#include "host/aligned_memory.hpp"

namespace pmt::host {

class HostModel {
 public:
  HostModel(const uint8_t* image, size_t bytes);
  HostModel(const HostModel&) = delete;
  HostModel& operator=(const HostModel&) = delete;

  const Model& model() const { return model_; }
  // Every call takes it that reads or writes weights, biases or scales.
  Access& access() const { return access_; }
  // The image with its present weights and a fresh checksum.
  std::vector<uint8_t> image() const;
  LayerStorage storage(int32_t op);
  // Refuses an op without weights.
  std::vector<LayerStorage> storage(const std::vector<int32_t>& layers);
  WritableLayer writable_layer(int32_t op);
  // Bound to the image and packed for host_kernels().
  const Network& network() const { return network_; }
  // The plan of inference.
  const Plan& plan() const { return plan_; }
  // After weights or biases were written through storage().
  void repack(int32_t op) { repack_layer(network_, op); }
  // After anything was written through writable_layer().
  void rescale(int32_t op) {
    rescale_layer(network_, op);
    repack_layer(network_, op);
  }

 private:
  mutable Access access_;
  AlignedMemory image_;
  Model model_;
  std::vector<Parameters> parameters_;
  AlignedMemory packed_;
  Network network_ = {};
  std::vector<int32_t> plan_table_;
  Plan plan_;
};

}  // namespace pmt::host
