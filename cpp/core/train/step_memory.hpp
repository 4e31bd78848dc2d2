// The memory that all parts of a step share: the setup, and what open() takes from the arena. The layers
// and the plan come first, the workers' memory last: other parts reserve room in the plan.
#pragma once

#include "core/base/executor.hpp"
#include "core/base/sample_source.hpp"
#include "core/net/network.hpp"
#include "core/net/segments.hpp"
#include "core/zo/layer.hpp"
#include "core/zo/loss.hpp"
#include "core/zo/workspace.hpp"

namespace pmt {

// The task that a trainer is opened for.
struct TrainerSetup {
  const Model* model;
  const Kernels* kernels;
  const TrainerOptions* options;
  const int32_t* layers;  // op indices, ascending
  int32_t layer_count;
  const LayerStorage* storage;  // one per layer
  int32_t batch;                // largest number of samples in a step
  Executor executor;
  // Weights from pack_network(), kept up to date by the trainer; null for kernels that do not pack.
  PackedLayer* packed = nullptr;
  // Memory a worker has for queries at once, in bytes; 0: one query, in the gaps of the main pass.
  int32_t query_bytes = 0;
  // As little memory as the step can do with, for devices: one worker, one query at a time. The gradient
  // of a layer is summed up for a group of channels after another; with one sample where activations are no
  // longer needed, or not yet. estimate() and sums() are not there. Only with kernels that do not pack.
  bool compact = false;
  // Compact: bytes for sums that are there at least, if not whole layers are smaller; 0: 16 KB, or
  // 64 KB with batches over 1, whose sums have memory of their own.
  int32_t sum_bytes = 0;
  // Compact: the ops that stream, as the plan of a trainer opened without them has found; null: they are
  // searched for.
  const StreamedOps* streams = nullptr;
  int32_t stream_count = 0;
  // With Loss::function, which no step can do without, and with no other loss; it outlives the trainer.
  const LossFunction* loss_function = nullptr;
};

struct StepMemory {
  static size_t table_bytes(const Model& model, int32_t layer_count);

  // Refuses what no trainer can do. The context points into this object.
  Status open(const TrainerSetup& wanted, Arena& arena);
  void open_workers(Arena& arena);

  int32_t workers() const { return setup.executor.workers; }
  bool is_layer_wise() const { return options.scope == Scope::layer_wise; }

  // A worker's input becomes the sample.
  Status read_sample(const SampleSource& source, int32_t sample, int32_t worker, Target* target) const;

  TrainerSetup setup = {};
  TrainerOptions options = {};
  Network network = {};
  Plan plan;
  StepContext context = {};
  Layer* layers = nullptr;
  int64_t* loss_starts = nullptr;   // of each layer's table, see loss_tables.hpp
  Workspace* workspaces = nullptr;  // one per worker
  float* targets = nullptr;         // [class], of the sample under way; in a compact plan whose loss takes targets
  Status* statuses = nullptr;       // one per worker
};

}  // namespace pmt
