// The covariance of two channels at a distance, from its definition.
#pragma once

#include <vector>

#include "reference/tensors.hpp"

namespace pmt::reference {

// Mean over all positions p of all images of (a(p) - mean a) * (b(p + (dy, dx)) - mean b), with 0 for a
// factor outside the image.
double autocovariance(const std::vector<Image>& images, int32_t a, int32_t b, int32_t dy, int32_t dx);

}  // namespace pmt::reference
