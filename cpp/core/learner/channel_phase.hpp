// Alignment of channels, and of windows and reliability before them, in steps: one image's forward up to one layer
// each, or a group of channels whose windows are corrected.
#pragma once

#include "core/base/linked/kept_activations.hpp"
#include "core/base/linked/windows.hpp"
#include "core/learner/channel_weighing.hpp"
#include "core/learner/learner_samples.hpp"
#include "core/learner/learner_state.hpp"
#include "core/learner/predictor.hpp"
#include "core/learner/window_alignment.hpp"

namespace pmt {

struct ChannelPhaseSetup {
  Predictor* predictor;            // whose passes end where the phase wants them to
  const ChannelStatistics* clean;  // of the layers but the last, one after another
  const float* clean_windows;      // see WindowAlignment; null: only channels are aligned
  AlignedWeights aligned;
  const LearnerSamples* samples;
  // Whether each forward goes on from where the last one stopped, with activations of the samples in external_bytes().
  bool keeps_activations;
  int8_t* external;
};

class ChannelPhase {
 public:
  // `memory` must be 16-byte aligned and outlive the phase: activations at its start, and behind them what a layer is
  // measured with. The predictor's plan may be another afterwards.
  Status open(const ChannelPhaseSetup& setup, uint8_t* memory, size_t bytes);
  size_t bytes_needed() const { return lists_at_ + list_bytes_; }
  int64_t external_bytes() const { return int64_t{kept_bytes_} * setup_.samples->capacity(); }

  // The model is aligned by these parameters, which are the image's, to `images` samples, spread over all; steps change
  // them layer by layer.
  void start(const LearnerParameters& parameters, int32_t images);
  // One of these samples, for as long as nobody writes to the phase's memory.
  int32_t sample(int32_t image) const { return samples_[image]; }
  Status step(bool* done);

  static constexpr int32_t fewest_samples = 2;  // one has no scatter

 private:
  // Where the layer is: its windows are measured, then corrected; then the channels that it mixes are weighed; then its
  // own are measured and aligned.
  enum class Part : int32_t { next, windows, correction, weighing, channels };

  const Model& model() const { return *setup_.predictor->network().model; }
  Status plan_layer(int32_t op);
  bool aligns_windows(int32_t op) const {
    return linked::windows && setup_.clean_windows != nullptr && is_window_op(model(), op);
  }
  bool weighs() const { return linked::reliability && setup_.aligned == AlignedWeights::reliability; }
  bool may_weigh(int32_t op) const { return weighs() && mixes_channels(model(), op); }
  // Whether an op is the first one with windows, which tell how much noise the samples hold.
  bool tells_noise(int32_t op) const { return weighs() && op == first_window_op_; }
  Part part_after_windows() const;
  Status weigh_sample();
  Status measure_sample();
  void end_measurement(Part next);
  void shrink_windows();
  Status forward_sample(int32_t begin, int32_t end, int32_t planned);
  int32_t leaves_at(int32_t op) const;
  // Known while compiling where that is not linked.
  bool keeps() const { return linked::kept_activations && setup_.keeps_activations; }
  int32_t kept_op() const { return linked::kept_activations ? kept_op_ : 0; }
  void align();

  ChannelPhaseSetup setup_ = {};
  const LearnerParameters* parameters_ = nullptr;
  uint8_t* memory_ = nullptr;
  size_t bytes_ = 0, lists_at_ = 0, list_bytes_ = 0;
  ChannelMeter meter_;
  int32_t* samples_ = nullptr;                // [count], to measure
  ChannelStatistics* found_ = nullptr;        // [group][channel]
  ChannelStatistics* shrunk_ = nullptr;       // [channel]
  const ChannelStatistics* clean_ = nullptr;  // of the layer
  WindowAlignment windows_;                   // of the layer
  ChannelWeighing weighing_;                  // the same
  Part part_ = Part::next;
  int32_t images_[ImageGroups::usual] = {};  // of each group
  int32_t count_ = 0, groups_ = 0, probed_ = 0;
  int32_t op_ = 0, group_ = 0, image_ = 0;
  int32_t first_window_op_ = -1;
  int32_t kept_bytes_ = 0;  // of a sample
  int32_t kept_op_ = 0;     // before which activations are kept; 0: nowhere yet
};

}  // namespace pmt
