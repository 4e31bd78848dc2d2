// The linear head of a network, solved on the inputs that it has on new samples.
//
// It minimizes the mean loss plus strength / (2 classes) times the squared distance from the old head, whose logits are
// first multiplied by the factor of 0, 1/8 .. 1 that lowers the loss most: an old head that the samples contradict
// counts for nothing, nor does a new one, whose weights are zeros. Folds choose the strength.
//
// Classes that no label names keep their logits: cross-entropy is that of the prediction among the others, to which
// classes of zeros belong, too, the old head keeps its factor of 1, and folds choose no strength below the default.
// Samples say nothing of a class by not showing it.
#pragma once

#include "core/learn/head_fit.hpp"

namespace pmt {

// The strength where no folds choose one.
constexpr float default_head_strength = 10.0f;
constexpr int32_t head_strengths = 9;  // to choose from

struct HeadSetup {
  const Model* model;
  int32_t op;           // a layer, see head_features()
  WritableLayer layer;  // its parameters
  HeadSamples samples;
  int32_t block;  // samples in memory at once; no result depends on it
  Executor executor;
};

// Inputs of one output of a layer; 0 where outputs have their own channels.
int32_t head_features(const Model& model, int32_t op);

class HeadSolver {
 public:
  // `memory` must be 16-byte aligned and outlive the solver.
  Status open(const HeadSetup& setup, void* memory, size_t bytes);
  size_t bytes_needed() const { return arena_.used(); }
  size_t bytes_on_device() const { return device_bytes(arena_); }

  // The strength of 100 to 0.01 with the lowest loss on held-out folds, each by a head fitted without it.
  void start_choice();
  // Solves the head and writes the layer: int8 weights that fill their range, weight scales, biases. A second solution
  // begins with the head that the first one wrote.
  void start_solution(float strength);
  // A few passes over the samples for what was started; `done` after the last ones.
  Status step(bool* done);
  float strength() const { return strength_; }
  // Mean losses on the samples: on those held out of a fold by the strength that was chosen, and on all by the
  // solution.
  float held_out_loss() const { return held_out_loss_; }
  float loss() const { return fitting_.loss(); }

  // All steps of them at once.
  Status choose_strength(float* strength);
  Status solve(float strength);

  int64_t macs() const { return objective_.macs(); }

 private:
  Status begin();
  Status run();
  void start_at_prior();
  void start_fit();
  Status end_fold(bool* done);
  void write_head();
  float by_step(int32_t feature, int32_t column) const;
  float filling_scale(int32_t column) const;
  void choose_scales(float* scales) const;
  void write_class(int32_t column, float scale) const;

  HeadSetup setup_ = {};
  Arena arena_;
  HeadObjective objective_;
  HeadPrior prior_ = {};
  FitMemory fit_ = {};
  float* units_ = nullptr;   // [class]
  float* biases_ = nullptr;  // [class]
  HeadFit fitting_;
  float strength_ = default_head_strength;
  float losses_[head_strengths] = {};  // held-out, of each strength, over the folds
  int32_t fold_ = 0, tried_ = 0;       // of the choice: the fold, and the strength's index
  float held_out_loss_ = 0.0f;         // by the chosen strength
  bool begun_ = false, choosing_ = false, fits_ = false;
  bool all_count_ = false;  // see HeadObjective::counts()
};

}  // namespace pmt
