// Forward passes up to the input of one layer, sample by sample: what the meters of statistics look at.
// With memory for the activations of all samples, each forward goes on from where the last one stopped.
#pragma once

#include "core/base/executor.hpp"
#include "core/base/sample_source.hpp"
#include "core/net/forward.hpp"

namespace pmt {

// What is alive before op `op`, of every sample. Whoever changes an op before that one, or the samples,
// sets `op` to 0 again.
struct KeptActivations {
  int8_t* values;  // samples x kept_bytes()
  int32_t samples;
  int32_t op = 0;  // 0: nothing yet
};

// The most activations of a sample that are alive before any op.
int32_t kept_bytes(const Model& model);

struct StatisticsSetup {
  const Model* model;
  const Kernels* kernels;
  Executor executor;
  PackedLayer* packed = nullptr;  // of pack_network(); null for kernels that do not pack
  // May be shared by meters; null: every forward begins with the sample.
  KeptActivations* kept = nullptr;
};

class LayerForwards {
 public:
  // Looks at one sample's activations, of which the layer's input is there; may overwrite its output.
  using Look = void (*)(void* context, const Activations& memory, int32_t worker);

  // Enough memory for open() to tell the exact need through the arena.
  static size_t table_bytes(const Model& model);

  // Takes what it needs from `arena`, whose memory must outlive it. A part of what follows must still be
  // taken where the arena proves too small, so that its need is counted: ask the arena whether it fits.
  Status open(const StatisticsSetup& setup, Arena& arena);

  // `look` runs once a sample, on any worker of 0..workers()-1. `in_turn` samples after another, of which
  // `samples` is a multiple, are looked at by one worker in their order.
  Status run(int32_t op, int32_t samples, const SampleSource& source, Look look, void* context, int32_t in_turn = 1);

  // Whether `op` is a layer.
  Status check(int32_t op) const;

  const Model& model() const { return *network_.model; }
  const Network& network() const { return network_; }
  const Plan& plan() const { return plan_; }
  int32_t workers() const { return executor_.workers; }

 private:
  struct Job;

  void look_at(const Job& job, int32_t sample, int32_t worker);
  bool goes_on(int32_t op) const { return kept_ != nullptr && kept_->op > 0 && kept_->op <= op; }
  int8_t* kept_of(int32_t sample) const { return kept_->values + int64_t{sample} * kept_bytes_; }

  Executor executor_ = {};
  Network network_ = {};
  Plan plan_;
  KeptActivations* kept_ = nullptr;
  int32_t kept_bytes_ = 0;              // of a sample
  Activations* activations_ = nullptr;  // one per worker
  Status* statuses_ = nullptr;          // likewise
};

}  // namespace pmt
