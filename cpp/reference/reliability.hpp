// How well a channel agrees with itself, from the definition of correlation.
#pragma once

#include <vector>

#include "reference/tensors.hpp"

namespace pmt::reference {

// Of the values of a channel at all places of the first images and at the same places of the second ones:
// Pearson's correlation, at least 0; 1 where either is constant.
double reliability(const std::vector<Image>& first, const std::vector<Image>& second, int32_t channel);

}  // namespace pmt::reference
