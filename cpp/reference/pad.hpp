#pragma once

#include "reference/tensors.hpp"

namespace pmt::reference {

struct Padding {
  int32_t top, left, bottom, right;
};

// The input in the middle of the zero point.
Image pad(const Image& input, int32_t zero_point, const Padding& padding);

}  // namespace pmt::reference
