// One training step: Algorithm 1 of the paper, on one arena and without a heap.
//
// The step is made of tasks (a sample, a range of its queries) whose results are integers in a
// table, so their order and the number of workers cannot change a bit. All layers are estimated on
// the weights from before the step (a global update); the updates come at the end, last layer
// first, because a layer's node gradient needs the activations that the old earlier layers give.
// For the same reason a step that is cancelled leaves the weights untouched.
#pragma once

#include "core/base/executor.hpp"
#include "core/base/sample_source.hpp"
#include "core/zo/shrinkage.hpp"
#include "core/zo/update.hpp"

namespace pmt {

// What probing a layer shows (see calibration.hpp); 0 where it was not probed.
struct LayerMeasurement {
  // Of the losses over the queries, in squared nats; mean over the samples, or that of the batch's mean
  // loss where the batch shares its perturbations. [estimator][probe].
  float variance[2][2];
  float input_squares;  // free_input_squares(), mean over the samples
};

struct TrainerSetup {
  const Model* model;
  const Kernels* kernels;
  const TrainerOptions* options;
  const int32_t* layers;  // op indices, ascending
  int32_t layer_count;
  const LayerStorage* storage;  // one per layer
  int32_t batch;                // largest number of samples in a step
  Executor executor;
  // Of pack_network(), kept up to date by the trainer; null for kernels that do not pack.
  PackedLayer* packed = nullptr;
  // Memory a worker has for queries at once, in bytes; 0: one query, in the gaps of the main pass.
  int32_t query_bytes = 0;
  // One per layer, also after open(); null: default_settings().
  const LayerSettings* settings = nullptr;
  // Memory for probe(), whatever the estimators of the layers are.
  bool probing = false;
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
};

struct StepResult {
  int64_t loss_sum;  // over the samples, before the update; fixed-point, see loss.hpp
  int32_t correct;   // samples classified correctly before the update
  int32_t changed;   // weights that changed
};

// All that the updates remember: the number of updates so far, then each layer's values in the order of
// update_memory.hpp. None where the options remember nothing.
struct UpdateMemories {
  float* values;
  int64_t count;
};

class Trainer {
 public:
  // Enough memory for open() to tell the exact need through bytes_needed().
  static size_t table_bytes(const Model& model, int32_t layer_count);

  // `memory` must be 16-byte aligned and outlive the trainer.
  Status open(const TrainerSetup& setup, void* memory, size_t bytes);
  size_t bytes_needed() const { return arena_.used(); }

  // A sample that can be read at first and not again, for its gradient, leaves the layers behind the
  // failing one updated: the caller goes back to its checkpoint.
  Status step(uint32_t step, float learning_rate, int32_t samples, const SampleSource& source, StepResult* result);

  // The first half of step(): fills the tables and the gradient sums of one layer, changes nothing.
  // For studies: the gradient of the mean loss by the stored integers is sum * gradient_factors().
  Status estimate(uint32_t step, int32_t samples, const SampleSource& source, int32_t layer);
  GradientSums sums() const { return sums_of(0, {0, INT32_MAX}, *estimated_); }
  // Of the sums' own memory, and how many of a layer's channels are summed up at once.
  int64_t sum_bytes() const { return static_cast<int64_t>(sizeof(int64_t)) * setup_.executor.workers * sum_count_; }
  int32_t channels_at_once(const Layer& layer) const;
  UpdateInput update_input(const Layer& layer, float learning_rate, int32_t samples) const;

  // For checkpoints. Written before the first step they are where training goes on from, once
  // check_memories() has found nothing that no training can have left.
  UpdateMemories memories() const { return memories_; }
  Status check_memories() const;
  // Steps whose updates have begun.
  int32_t steps_begun() const { return steps_begun_; }
  // Queries of a batch with other settings, in streams apart from those of the step: each layer's
  // variance[estimator][probe], and input_squares. Neither changes anything. For setups that probe, with
  // at most the options' probe_queries.
  Status probe(const LayerSettings* settings, uint32_t step, int32_t samples, const SampleSource& source, int32_t probe,
               LayerMeasurement* measurements);
  Status measure_inputs(int32_t samples, const SampleSource& source, LayerMeasurement* measurements);
  // Sets of perturbations that a full batch averages over.
  int32_t perturbation_sets(Estimator estimator) const { return shares_perturbations(estimator) ? 1 : setup_.batch; }

  const Layer& layer(int32_t index) const { return layers_[index]; }
  int32_t layer_count() const { return setup_.layer_count; }
  const Estimation& estimation() const { return estimation_; }
  const Plan& plan() const { return plan_; }
  const Network& network() const { return network_; }
  const Workspace& workspace(int32_t worker) const { return workspaces_[worker]; }

 private:
  struct SampleState {
    int32_t loss;
    int32_t correct;
  };
  struct Job;
  struct GradientJob;
  struct Tables;

  static Tables take_tables(Arena& arena, const Model& model, int32_t layer_count, bool probing, bool compact);
  Status check_setup() const;
  Status make_plan(const Tables& tables);
  Status open_layers();
  Status open_layer(int32_t index, const LayerSettings& settings);
  void open_losses();
  void open_workspaces();
  int64_t open_table();
  int32_t table_count() const;
  int32_t table_queries(int32_t table) const;
  int32_t most_table_queries() const;
  // Weights moved one by one: the differences of a batch are added up, in a row of each worker, for
  // there may be a hundred thousand of them.
  bool adds_up(int32_t table) const;
  bool is_coordinate_wise() const { return options_.directions == Directions::coordinate; }
  // The row of a sample, or of a worker where the table adds up.
  int32_t* losses(int32_t table, int32_t row) const;
  struct Channels {
    int32_t begin, end;
  };
  void open_sums();
  bool sums_lie_in_gaps() const { return setup_.compact && setup_.batch == 1; }
  Plan::Gap sum_gap(const Layer& layer) const;
  void reserve_sums(const Layer& layer, int32_t bytes);
  int64_t* sum_memory(int32_t worker, const Layer& layer) const;
  GradientSums sums_of(int32_t worker, const Channels& channels, const Layer& layer) const;
  bool shares_perturbations(Estimator estimator) const;

  void apply(int32_t layer, const LayerSettings& settings);
  float loss_variance(int32_t layer, int32_t samples);
  Status evaluate(uint32_t step, int32_t samples, const SampleSource& source);
  void evaluate_queries(Job& job, int32_t sample, int32_t chunk, int32_t worker);
  SampleState evaluate_clean(int32_t label, int32_t done, int32_t worker) const;
  void clear_added();
  void add_differences(int32_t table, const QueryBatch& queries, int32_t clean, int32_t worker);
  void join_added(int32_t table);
  void leave_out_inactive(const Layer& layer, const GradientSums& sums);
  void to_differences(int32_t samples);
  void average_over_batch(int32_t table, int32_t samples);
  Status sum_gradients(int32_t layer, const Channels& channels, int32_t samples, const SampleSource& source);
  void clear_sums(const GradientJob& job, int32_t worker) const;
  void add_gradient(const GradientJob& job, int32_t sample, int32_t worker);
  bool run_to_gradient(const GradientJob& job, int32_t sample, int32_t worker, int32_t* label);
  void add_head(int32_t sample, int32_t worker, int32_t label, const Layer& layer, const GradientSums& sums);
  void add_nodes(const GradientJob& job, int32_t sample, int32_t worker, const GradientSums& sums);
  Status update(int32_t index, float learning_rate, int32_t samples, const SampleSource& source, int32_t* changed);
  void open_memories();
  UpdateMemory memory_of(int32_t layer) const;
  float noise_of(int32_t layer, int32_t samples) const;
  float shrink(int32_t layer, int32_t samples, float squared_norm) const;
  Status read_sample(const SampleSource& source, int32_t sample, int32_t worker, int32_t* label);

  TrainerSetup setup_ = {};
  TrainerOptions options_ = {};
  Arena arena_;
  Network network_ = {};
  Plan plan_;
  Estimation estimation_ = {};
  Layer* layers_ = nullptr;
  int32_t* layer_ops_ = nullptr;
  LayerSettings* settings_ = nullptr;  // in force, while others are probed
  int32_t* losses_ = nullptr;          // [table][sample or worker][query]; becomes the differences
  int64_t* starts_ = nullptr;          // of the tables in losses_
  int32_t* averages_ = nullptr;        // [query], of the batch
  SampleState* samples_ = nullptr;
  int64_t* sums_ = nullptr;  // [worker][weights, then bias]
  int64_t sum_count_ = 0;    // of a worker
  const Layer* estimated_ = nullptr;
  int32_t ready_ = -1;                 // layer whose main pass, of the only sample, is in the workspace
  int32_t* head_gradients_ = nullptr;  // compact: [sample][class]
  bool have_head_gradients_ = false;
  UpdateMemories memories_ = {};
  int64_t* input_squares_ = nullptr;  // [sample], of the layer whose gradient is being summed; see shrinkage.hpp
  int32_t steps_begun_ = 0;
  Workspace* workspaces_ = nullptr;
  Status* statuses_ = nullptr;  // one per worker
};

}  // namespace pmt
