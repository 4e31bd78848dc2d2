// Forward passes up to the input of one layer, sample by sample: what the meters of statistics look at.
#pragma once

#include "core/executor.hpp"
#include "core/forward.hpp"
#include "core/sample_source.hpp"

namespace pmt {

struct StatisticsSetup {
  const Model* model;
  const Kernels* kernels;
  Executor executor;
  PackedLayer* packed = nullptr;  // of pack_network(); null for kernels that do not pack
};

class LayerForwards {
 public:
  // Looks at one sample's activations, of which the layer's input is there; may overwrite its output.
  using Look = void (*)(void* context, const Workspace& workspace, int32_t worker);

  // Enough memory for open() to tell the exact need through the arena.
  static size_t table_bytes(const Model& model);

  // Takes what it needs from `arena`, whose memory must outlive it. A part of what follows must still be
  // taken where the arena proves too small, so that its need is counted: ask the arena whether it fits.
  Status open(const StatisticsSetup& setup, Arena& arena);

  // `look` runs once a sample, on any worker of 0..workers()-1.
  Status run(int32_t op, int32_t samples, const SampleSource& source, Look look, void* context);

  // Whether `op` is a layer.
  Status check(int32_t op) const;

  const Model& model() const { return *network_.model; }
  const Network& network() const { return network_; }
  const Plan& plan() const { return plan_; }
  int32_t workers() const { return executor_.workers; }

 private:
  struct Job;

  void look_at(const Job& job, int32_t sample, int32_t worker);

  Executor executor_ = {};
  Network network_ = {};
  Plan plan_;
  Workspace* workspaces_ = nullptr;  // one per worker
  Status* statuses_ = nullptr;       // likewise
};

}  // namespace pmt
