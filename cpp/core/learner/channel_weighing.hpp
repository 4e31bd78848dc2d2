// Weighs one layer after another by the reliability of its input channels. The caller runs the forwards.
#pragma once

#include "core/align/channel_reliability.hpp"
#include "core/base/linked/reliability.hpp"
#include "core/learner/learner_samples.hpp"
#include "core/zo/layer.hpp"

namespace pmt {

class ChannelWeighing {
 public:
  // For the next layer, which mixes channels.
  void take(const Model& model, int32_t op, const LearnerSamples& samples, Arena& arena);
  void begin(const Model& model, int32_t op) { sums_.begin(model.input_of(model.op(op))); }
  // Adds the noise probe, with the details of another sample, to the network's input.
  Status add_probe(const Model& model, const LearnerSamples& samples, int32_t other, int8_t* input) const;
  // The layer's input, of an image without the probe, then with it.
  void add(const int8_t* input) { sums_.add(input); }
  void weigh(const Model& model, int32_t op, int32_t images, float strength, const WritableLayer& layer) const;

 private:
  ReliabilitySums sums_;
  ChannelReliability* found_ = nullptr;  // [channel]
  float* scratch_ = nullptr;
  int8_t* other_ = nullptr;  // image of the noise probe, with which the memory of the stage begins
  int32_t* column_sums_ = nullptr;
};

}  // namespace pmt
