// The test-retest reliability of a channel, from the definition of correlation.
#pragma once

#include <vector>

#include "reference/tensors.hpp"

namespace pmt::reference {

// Pearson's correlation of the values of a channel at all positions of the first images with those at the same
// positions of the second ones; at least 0, and 1 where either is constant.
double reliability(const std::vector<Image>& first, const std::vector<Image>& second, int32_t channel);

}  // namespace pmt::reference
