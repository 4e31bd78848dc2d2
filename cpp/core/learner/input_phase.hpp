// The choice of filters before the network in steps: one image's forward each. Every candidate is aligned behind its
// filters, and predicts views of the same images; in the end the model is aligned behind those that are chosen.
#pragma once

#include "core/learn/input_search.hpp"
#include "core/learner/channel_phase.hpp"

namespace pmt {

struct InputPhaseSetup {
  Predictor* predictor;
  ChannelPhase* channels;  // open, in the same memory
  const LearnerSamples* samples;
  LearnerParameters* parameters;  // of the aligned state; the model is in it when a step is called
};

class InputPhase {
 public:
  static constexpr int32_t fewest_samples = InputSearch::fewest_images;

  // `memory` must be 16-byte aligned and outlive the phase; alignment's stands at its start.
  Status open(const InputPhaseSetup& setup, uint8_t* memory, size_t bytes);
  size_t bytes_needed() const { return needed_; }

  void start();
  Status step(bool* done);

 private:
  const Model& model() const { return *setup_.predictor->network().model; }
  void align_behind(const FilterChain& filters, int32_t images);
  Status predict_view();
  int64_t measure(int32_t views);
  void report();

  InputPhaseSetup setup_ = {};
  InputSearch search_;
  uint8_t* memory_ = nullptr;
  float* logits_ = nullptr;           // [view][image][class], of the images of a candidate
  int64_t* sums_ = nullptr;           // [class]
  float* surprisal_ = nullptr;        // [class]
  int32_t* disagreements_ = nullptr;  // [image]
  int32_t image_ = 0, view_ = 0;
  bool aligns_ = false;
  size_t needed_ = 0;
};

}  // namespace pmt
