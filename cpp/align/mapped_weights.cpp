#include "align/mapped_weights.hpp"

#include "core/base/arithmetic.hpp"

namespace pmt {

void write_mapped_channel(const Model& model, const OpRecord& op, int32_t channel, const MappedWeights& mapped,
                          const AlignedLayer& layer) {
  const ChannelWeights at = channel_weights(model, op, channel);
  const float zero = to_float(model.input_of(op).zero_point);
  const float old = layer.weight_scales[channel];
  float largest = 0.0f;
  float moved = 0.0f;  // of the mean sum, in products of an old weight's step and an input's
  for (int32_t i = 0; i < at.count; ++i) {
    const float value = mapped.values[i];
    const float size = value < 0.0f ? -value : value;
    largest = size > largest ? size : largest;
    const float weight = to_float(layer.weights[at.first + i * at.stride]);
    moved += (weight - value) * (mapped.means[i % mapped.channels] - zero);
  }
  const float step = largest / to_float(largest_weight);
  const float scale = old * step;
  if (!(scale > dead_channel_scale) || !(scale < largest_scale)) return;
  for (int32_t i = 0; i < at.count; ++i) {
    layer.weights[at.first + i * at.stride] = static_cast<int8_t>(round_half_even(mapped.values[i] / step));
  }
  layer.bias[channel] = round_bias((to_float(layer.bias[channel]) + moved) / step);
  layer.weight_scales[channel] = scale;
}

}  // namespace pmt
