// The head in steps: one image's features each, then a few passes over all of them.
#pragma once

#include "core/learn/folds.hpp"
#include "core/learn/head_solver.hpp"
#include "core/learner/learner_samples.hpp"
#include "core/learner/predictor.hpp"

namespace pmt {

struct HeadPhaseSetup {
  const Predictor* predictor;  // of the model in the state whose head is solved
  const LearnerSamples* samples;
  WritableLayer layer;  // the head's parameters, as in the image
};

class HeadPhase {
 public:
  // `memory` must be 16-byte aligned and outlive the phase.
  Status open(const HeadPhaseSetup& setup, void* memory, size_t bytes);
  size_t bytes_needed() const { return needed_; }
  size_t bytes_on_device() const { return on_device_; }
  Status step(bool* done);

 private:
  static FoldSample read_fold_sample(void* context, int32_t index);
  int32_t assign_folds(Arena scratch);
  static bool read_features(void* context, int32_t index, int8_t* row, int32_t* label);
  Status add_features();

  HeadPhaseSetup setup_ = {};
  HeadSolver solver_;
  int8_t* rows_ = nullptr;     // [sample][feature]
  int32_t* places_ = nullptr;  // [sample], among all
  uint8_t* folds_ = nullptr;   // [sample]
  float* targets_ = nullptr;   // [sample], of one output
  int32_t features_ = 0, count_ = 0, filled_ = 0;
  bool chosen_ = false;
  size_t needed_ = 0, on_device_ = 0;
};

}  // namespace pmt
