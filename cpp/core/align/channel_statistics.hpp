// Mean and deviation of a layer's outputs, channel by channel, over the positions and the samples:
// before the activation and the requantization, in real units. The layer's own kernels measure them, with
// another requantization that makes the outputs small integers around a guess.
#pragma once

#include "core/align/layer_forwards.hpp"

namespace pmt {

struct ChannelStatistics {
  float mean, deviation;
};

// The measurement of one layer, on whatever forwards reach its input. A round begins, adds samples on any workers, and
// concludes.
class ChannelMeter {
 public:
  // For layers of at most `channels` channels, padded as the kernels want them.
  void take(int32_t channels, int32_t workers, size_t alignment, Arena& arena);

  void begin(const Network& network, int32_t index, const ChannelStatistics* guess, bool first);
  // The layer's input is there; its output may be overwritten.
  void add(const Network& network, const Plan& plan, int32_t index, const Activations& memory, int32_t worker);
  // `values` of each channel: positions times samples. Dead channels have none: 0, 0.
  void conclude(const Network& network, int32_t index, int64_t values, ChannelStatistics* found) const;

 private:
  struct ChannelSums {
    int64_t values, squares;
  };
  ChannelSums* sums_of(int32_t worker) const { return sums_ + static_cast<int64_t>(worker) * channels_; }

  int32_t channels_ = 0, workers_ = 0;
  int32_t* bias_ = nullptr;      // of the requantization
  float* scales_ = nullptr;      // of the same channels
  float* centers_ = nullptr;     // the real value of 0
  float* steps_ = nullptr;       // the real value of 1
  ChannelSums* sums_ = nullptr;  // [worker][channel]
};

// Positions times samples of a measurement, at most: sums of squares stay inside 64 bits.
constexpr int64_t most_measured_values = int64_t{1} << 24;

class StatisticsMeter : public LayerForwards {
 public:
  // `memory` must be 16-byte aligned and outlive the meter.
  Status open(const StatisticsSetup& setup, void* memory, size_t bytes);

  // Measures layer `op`. Every round resolves its outputs in steps of an eighth of the guessed deviation, up to
  // 15.9 deviations from the guessed mean; its result is the next round's guess, at most 32 times as narrow.
  // `guess` may be `found`. Dead channels have none: 0, 0.
  Status measure(int32_t op, int32_t samples, const SampleSource& source, int32_t rounds,
                 const ChannelStatistics* guess, ChannelStatistics* found);

 private:
  ChannelMeter meter_;
};

// Gives a layer's channels the reference's statistics in place of those found, by its weight scales
// and biases alone: adaptive batch normalization (Li et al. 2016, arXiv:1603.04779) of a network
// whose batch norm is folded. A gain is at most 16, at least 1/16. Channels that are dead, or
// constant in the reference or as found, stay as they are.
void align_layer(const Model& model, int32_t index, const ChannelStatistics* reference, const ChannelStatistics* found,
                 const WritableLayer& layer);

}  // namespace pmt
