// Statistics of a layer's windows over the positions and the samples: the mean of every channel, and the
// autocovariances of every group (see below). Exact integer sums of the int8 inputs.
#pragma once

#include "core/align/layer_forwards.hpp"
#include "core/image/model.hpp"

namespace pmt {

// Autocovariances of a layer's input: the covariance of two positions, for every distance inside the layer's
// window. Channels that a layer mixes form a group: all channels of a convolution, each single channel of a
// depthwise one.

struct WindowGroups {
  int32_t count;     // 0: the layer has no windows
  int32_t channels;  // of a group
  int32_t kernel_h, kernel_w;

  int32_t window() const { return channels * kernel_h * kernel_w; }
  // Distances: (dy, dx) stands for (-dy, -dx), too. (0, 0) is the first.
  int32_t lags() const { return kernel_w + (kernel_h - 1) * (2 * kernel_w - 1); }
  // Values of a group: [lag][channel][channel of the second position].
  int32_t values() const { return lags() * channels * channels; }
};

// Larger windows stay as they are: their matrices would take much memory and time.
constexpr int32_t largest_window = 160;

// Returns a count of 0 for a pointwise or fully connected layer, one whose window is too large, and the last.
WindowGroups window_groups(const Model& model, int32_t op);

// The distance from one position of the input to another.
struct Lag {
  int32_t dy, dx;
};
Lag lag_at(const WindowGroups& groups, int32_t index);

// sums[group][lag][i][j] += over positions p: values[p][i] * values[p + lag][j]. Outside the map all is 0.
// `map` holds height x width x channels values of at most 255 in magnitude.
void add_products(const WindowGroups& groups, const int16_t* map, const TensorRecord& shape, int64_t* sums);

// The covariance matrix of a window's values, in the order of the layer's weights ([y][x][channel]),
// from one group's values.
void window_covariance(const WindowGroups& groups, const float* values, float* matrix);

// The measurement of one layer, on whatever forwards reach its input. It begins, adds samples on any workers, and
// concludes.
class WindowSums {
 public:
  // The most channels and elements of a layer's input, and the most values of all its groups.
  struct Size {
    int32_t channels, elements, values;
  };
  // The size that this layer, which has windows, and those before it need.
  static Size larger(const Size& size, const Model& model, int32_t op);
  void take(const Size& size, int32_t workers, Arena& arena);

  // `centers`, one a channel, are near the means, in int8 steps. They are subtracted before values are multiplied.
  void begin(const Model& model, int32_t op, const float* centers);
  void add(const int8_t* input, int32_t worker);
  // Ends the measurement of this number of samples, and writes means [channel], in int8 steps.
  void conclude(int32_t samples, float* means);
  // After that, a value of [group][groups.values()], in squares of int8 steps. The rest of the mean is subtracted as if
  // no position lay at a border.
  float value(int32_t index) const;

 private:
  float mean(const int64_t* sums, int32_t stride) const;

  Size size_ = {};
  int32_t workers_ = 0;
  int64_t* channels_ = nullptr;  // [worker][channel]
  int64_t* products_ = nullptr;  // [worker][value]
  int16_t* maps_ = nullptr;      // [worker][element]
  const Model* model_ = nullptr;
  int32_t op_ = 0;
  WindowGroups groups_ = {};
  const float* centers_ = nullptr;
  float positions_ = 0.0f;  // of all samples
};

class WindowMeter : public LayerForwards {
 public:
  // Positions times samples of a measurement: their sums stay inside 64 bits.
  static constexpr int64_t most_values = int64_t{1} << 30;

  // `memory` must be 16-byte aligned and outlive the meter.
  Status open(const StatisticsSetup& setup, void* memory, size_t bytes);

  // Measures layer `op`, which has windows; see WindowSums.
  Status measure(int32_t op, int32_t samples, const SampleSource& source, const float* centers, float* means,
                 float* values);

 private:
  WindowSums sums_;
};

}  // namespace pmt
