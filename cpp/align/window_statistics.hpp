// Statistics of a layer's windows over the positions and the samples: the mean of every channel, and the
// autocovariances of every group (see autocovariance.hpp). Exact integer sums of the int8 inputs.
#pragma once

#include "align/autocovariance.hpp"
#include "align/layer_forwards.hpp"

namespace pmt {

class WindowMeter {
 public:
  // Positions times samples of a measurement: their sums stay inside 64 bits.
  static constexpr int64_t most_values = int64_t{1} << 30;

  // Enough memory for open() to tell the exact need through bytes_needed().
  static size_t table_bytes(const Model& model) { return LayerForwards::table_bytes(model); }

  // `memory` must be 16-byte aligned and outlive the meter.
  Status open(const StatisticsSetup& setup, void* memory, size_t bytes);
  size_t bytes_needed() const { return arena_.used(); }

  // Measures layer `op`, which has windows. `centers`, one a channel, are near the means, in int8 steps. They
  // are subtracted before values are multiplied; the rest of the mean is subtracted as if no position lay at a
  // border. `means` [channel] in int8 steps, `values` [group][groups.values()] in their squares.
  Status measure(int32_t op, int32_t samples, const SampleSource& source, const float* centers, float* means,
                 float* values);

 private:
  struct Job;
  // One worker's sums.
  struct Sums {
    int64_t* channels;
    int64_t* products;
    int16_t* map;
  };

  void add_sample(const Job& job, const Activations& memory, int32_t worker);
  void conclude(const Job& job, int32_t samples, float* means, float* values) const;

  Arena arena_;
  LayerForwards forwards_;
  int32_t most_channels_ = 0;
  int64_t most_products_ = 0;
  Sums* sums_ = nullptr;  // [worker]
};

}  // namespace pmt
