// Statistics of a layer's outputs in real units, from exact accumulators.
#pragma once

#include <vector>

#include "reference/tensors.hpp"

namespace pmt::reference {

struct MeanAndDeviation {
  double mean, deviation;
};

// Statistics of (accumulator + bias) * scale in one channel, over all positions of all images; `scale` is
// s_x * s_w.
MeanAndDeviation channel_statistics(const std::vector<Sums>& images, int32_t channel, int32_t bias, double scale);

}  // namespace pmt::reference
