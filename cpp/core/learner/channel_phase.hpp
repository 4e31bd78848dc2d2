// Alignment of channels in steps: one image's forward up to one layer each.
#pragma once

#include "core/align/shrinkage.hpp"
#include "core/learner/learner_samples.hpp"
#include "core/learner/learner_state.hpp"

namespace pmt {

struct ChannelPhaseSetup {
  const Model* model;  // in the aligned state
  const Kernels* kernels;
  const ChannelStatistics* clean;  // of the layers but the last, one after another
  const LearnerSamples* samples;
  int32_t most_samples;
};

class ChannelPhase {
 public:
  // Takes activations, which hold nothing between two steps, from an arena. `memory` must be 16-byte aligned and
  // outlive the phase.
  Status open(const ChannelPhaseSetup& setup, Arena& activations, void* memory, size_t bytes);
  size_t bytes_needed() const { return needed_; }
  size_t bytes_on_device() const { return on_device_; }
  // The parameters are those of the image; steps change them layer by layer.
  void start(const LearnerParameters& parameters);
  Status step(bool* done);

  static constexpr int32_t fewest_samples = 2;  // one has no scatter

 private:
  static bool read_sample(void* context, int32_t index, int8_t* image, int32_t* label);
  void align();

  ChannelPhaseSetup setup_ = {};
  const LearnerParameters* parameters_ = nullptr;
  StatisticsMeter meter_;
  int32_t* samples_ = nullptr;                // [count], to measure
  ChannelStatistics* found_ = nullptr;        // [group][channel]
  ChannelStatistics* shrunk_ = nullptr;       // [channel]
  const ChannelStatistics* clean_ = nullptr;  // of the layer
  int32_t images_[ImageGroups::usual] = {};   // of each group
  int32_t count_ = 0, groups_ = 0;
  int32_t op_ = 0, group_ = 0, image_ = 0;
  size_t needed_ = 0, on_device_ = 0;
  Status read_ = {};
};

}  // namespace pmt
