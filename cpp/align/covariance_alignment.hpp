// Covariance alignment: gives a layer's windows the covariances that they have on clean images. The linear map
// that does it goes into the layer's own weights; the channel alignment that follows sets means and deviations.
#pragma once

#include "align/autocovariance.hpp"
#include "align/channel_statistics.hpp"

namespace pmt {

// The results of WindowMeter for one layer.
struct WindowStatistics {
  const float* means;
  const float* values;
};

// Bytes of scratch that align_covariances() takes.
size_t covariance_alignment_bytes(const WindowGroups& groups);

// weights' = map * weights, by output channel, with map the transport from the windows found to the
// reference's (see transport.hpp), for the output channels of one group; both covariances are divided by their mean
// variance. Then weights, weight scales and biases are written anew: int8 weights fill their range, and what the map
// takes from the mean output goes into the bias. Channels that are dead, or whose group is constant in the reference or
// as found, stay as they are. Groups may be done in any order.
void align_covariances(const Model& model, int32_t op, int32_t group, const WindowStatistics& reference,
                       const WindowStatistics& found, const AlignedLayer& layer, void* scratch);

}  // namespace pmt
