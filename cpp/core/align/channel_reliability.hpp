// The test-retest reliability of a layer's input channels: each one's correlation with itself on images with
// and without added noise, the noise probe. A channel that the probe changes much carries little signal through
// noise, and gets less weight in the layer than it has on clean images.
#pragma once

#include "core/align/channel_statistics.hpp"

namespace pmt {

// One input channel's mean on the images without the probe, in int8 steps, and its correlation with itself on
// those with it, 0..1; 1 for a constant channel.
struct ChannelReliability {
  float mean, correlation;
};

// Whether a layer mixes channels that other layers made: no depthwise layer, none that reads the image, and
// not the last.
bool mixes_channels(const Model& model, int32_t op);

// How many of a number of images, spread over all of them, get noise probes: a few hundred are enough, and fewer where
// maps are large.
int32_t probed_images(const Model& model, int32_t images);

// Sums over pairs of a layer's inputs: those of an image, then of the same image with the noise probe.
class ReliabilitySums {
 public:
  // Positions times pairs: the products of their sums stay inside 64 bits.
  static constexpr int64_t most_values = int64_t{1} << 24;
  // The most channels and elements of an input.
  struct Size {
    int32_t channels, elements;
  };
  // The size that this layer, which mixes channels, and those before it need.
  static Size larger(const Size& size, const Model& model, int32_t op);
  void take(const Size& size, Arena& arena);

  void begin(const TensorRecord& input);
  void add(const int8_t* input);
  // Adds the sums of another one over the same input.
  void merge(const ReliabilitySums& other);
  // One result a channel, of all pairs.
  void conclude(int64_t pairs, ChannelReliability* found) const;

 private:
  struct PairSums {
    int64_t first, second, first_squares, second_squares, products;
  };

  const TensorRecord* input_ = nullptr;
  int8_t* first_ = nullptr;   // the input of the image without the probe
  bool awaited_ = false;      // the pair's second image is still to come
  PairSums* sums_ = nullptr;  // [channel]
};
template <>
inline constexpr size_t size_on_device<ReliabilitySums> = 16;

class ReliabilityMeter : public LayerForwards {
 public:
  // `memory` must be 16-byte aligned and outlive the meter.
  Status open(const StatisticsSetup& setup, void* memory, size_t bytes);

  // Measures layer `op`, which mixes channels; one result an input channel. Samples are pairs: an image, then
  // the same image with the noise probe.
  Status measure(int32_t op, int32_t samples, const SampleSource& source, ChannelReliability* found);

 private:
  ReliabilitySums* sums_ = nullptr;  // [worker]
};

// Floats of scratch that weigh_channels() takes.
int32_t weighing_floats(const Model& model, int32_t op);

// Multiplies the weights of layer `op`, which mixes channels, by 1 - strength * (1 - correlation) of their input
// channels, over the largest such share, and writes them, the weight scales and the biases anew: int8 weights fill
// their range, mean outputs stay. `strength` is 0..1. Dead channels stay as they are, and all do where no share is
// above 0.
void weigh_channels(const Model& model, int32_t op, const ChannelReliability* found, float strength,
                    const WritableLayer& layer, float* scratch);

}  // namespace pmt
