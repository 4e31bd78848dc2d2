// The memory that all parts of a step share: the setup, and what open() takes from the arena. The layers
// and the plan come first, the workers' memory last: other parts reserve room in the plan.
#pragma once

#include "core/base/sample_source.hpp"
#include "core/train/trainer_setup.hpp"
#include "core/zo/loss.hpp"
#include "core/zo/workspace.hpp"

namespace pmt {

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
