// A model that owns its image, aligned and writable: training changes the weights in place.
#pragma once

#include <atomic>
#include <cstdint>
#include <stdexcept>
#include <vector>

#include "core/align/channel_statistics.hpp"
#include "core/image/model.hpp"
#include "core/kernels/table.hpp"
#include "core/net/network.hpp"
#include "core/net/plan.hpp"
#include "core/zo/layer.hpp"
#include "host/aligned_memory.hpp"

namespace pmt::host {

// The bindings turn it into pmt.errors.ModelBusyError.
class BusyError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Who uses a model at present: any number of calls that read it, or one that runs alone. Nobody waits, for
// the other call may be this thread's own, which a signal handler interrupted: who cannot run is refused.
class Access {
 public:
  // For as long as they live. Both throw BusyError where the model is in use already.
  class Shared {
   public:
    explicit Shared(Access& access) : access_(access) {
      int32_t users = access_.users_.load();
      do {
        if (users < 0) {
          throw BusyError(
              "the model is being trained, measured or changed by another call; wait until that returns, or read a "
              "Model.copy() made before it");
        }
      } while (!access_.users_.compare_exchange_weak(users, users + 1));
    }
    ~Shared() { --access_.users_; }
    Shared(const Shared&) = delete;
    Shared& operator=(const Shared&) = delete;

   private:
    Access& access_;
  };

  class Exclusive {
   public:
    explicit Exclusive(Access& access) : access_(access) {
      int32_t nobody = 0;
      if (access_.users_.compare_exchange_strong(nobody, alone)) return;
      throw BusyError(
          "the model is in use by another call, and a call that trains, measures or changes it runs alone; wait until "
          "the other returns, or give each thread a Model.copy()");
    }
    ~Exclusive() { access_.users_ = 0; }
    Exclusive(const Exclusive&) = delete;
    Exclusive& operator=(const Exclusive&) = delete;

   private:
    Access& access_;
  };

 private:
  static constexpr int32_t alone = -1;
  std::atomic<int32_t> users_{0};
};

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
