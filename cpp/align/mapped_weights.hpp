// Writes weights that a linear map of the inputs was multiplied into.
#pragma once

#include "align/channel_statistics.hpp"

namespace pmt {

// An output channel's weights, in steps of its old scale, in the layer's order; and the mean input, in int8
// steps, of the channels that they belong to in turn.
struct MappedWeights {
  const float* values;
  const float* means;
  int32_t channels;
};

// Writes weights, weight scale and bias of an output channel: int8 weights fill their range, and what the map takes
// from the mean output goes into the bias. The channel stays as it is where the scale would leave its range.
void write_mapped_channel(const Model& model, const OpRecord& op, int32_t channel, const MappedWeights& mapped,
                          const AlignedLayer& layer);

}  // namespace pmt
