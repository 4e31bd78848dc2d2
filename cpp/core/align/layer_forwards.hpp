// Forward passes up to the input of one layer, sample by sample, for the meters of statistics. With memory
// for the activations of all samples, each forward goes on from where the last one stopped.
#pragma once

#include "core/base/executor.hpp"
#include "core/base/sample_source.hpp"
#include "core/net/forward.hpp"

namespace pmt {

// Every sample's activations that are alive before op `op`. Whoever changes an op before that one, or the
// samples, sets `op` to 0 again.
struct KeptActivations {
  int8_t* values;  // samples x kept_bytes()
  int32_t samples;
  int32_t op = 0;  // 0: nothing yet
};

// The most activations of a sample that are alive before any op.
int32_t kept_bytes(const Model& model);

// Copies one sample's activations that are alive before an op: from the plan's places into kept_bytes(), or back.
void copy_activations(const Model& model, const Plan& plan, const Activations& memory, int32_t op, int8_t* kept,
                      bool restores);

struct StatisticsSetup {
  const Model* model;
  const Kernels* kernels;
  Executor executor;
  PackedLayer* packed = nullptr;  // of pack_network(); null for kernels that do not pack
  // May be shared by meters; null: every forward begins with the sample.
  KeptActivations* kept = nullptr;
};

// The base of a meter, whose open() begins with open_forwards() and takes what else it needs from the same arena.
class LayerForwards {
 public:
  // Enough memory for open() to tell the exact need through bytes_needed().
  static size_t table_bytes(const Model& model);
  size_t bytes_needed() const { return arena_.used(); }

 protected:
  // `memory` must be 16-byte aligned and outlive the meter. Succeeds where it holds no more than the tables, so that
  // the meter can count the whole need: ask the arena whether it fits.
  Status open_forwards(const StatisticsSetup& setup, void* memory, size_t bytes);

  // Calls visit(memory, worker) once a sample, on any worker of 0..workers()-1: it reads the layer's input from the
  // sample's activations and may overwrite the layer's output. One worker job each group of `consecutive` samples
  // in their order; `samples` is a multiple of it.
  template <typename Visit>
  Status run(int32_t op, int32_t samples, const SampleSource& source, const Visit& visit, int32_t consecutive = 1) {
    const auto call = [](const void* context, const Activations& memory, int32_t worker) {
      (*static_cast<const Visit*>(context))(memory, worker);
    };
    return run({&source, op, call, &visit, consecutive}, samples);
  }

  // Whether `op` is a layer.
  Status check(int32_t op) const;

  const Model& model() const { return *network_.model; }
  const Network& network() const { return network_; }
  const Plan& plan() const { return plan_; }
  int32_t workers() const { return executor_.workers; }
  Arena& arena() { return arena_; }

 private:
  struct Job {
    const SampleSource* source;
    int32_t op;
    void (*visit)(const void* context, const Activations& memory, int32_t worker);
    const void* context;
    int32_t consecutive;
  };

  Status run(const Job& job, int32_t samples);
  void visit_sample(const Job& job, int32_t sample, int32_t worker);
  bool resumes_at(int32_t op) const { return kept_ != nullptr && kept_->op > 0 && kept_->op <= op; }
  int8_t* kept_of(int32_t sample) const { return kept_->values + int64_t{sample} * kept_bytes_; }

  Arena arena_;
  Executor executor_ = {};
  Network network_ = {};
  Plan plan_;
  KeptActivations* kept_ = nullptr;
  int32_t kept_bytes_ = 0;              // of a sample
  Activations* activations_ = nullptr;  // one per worker
  Status* statuses_ = nullptr;          // of the same task
};

}  // namespace pmt
