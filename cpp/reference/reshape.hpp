#pragma once

#include "reference/tensors.hpp"

namespace pmt::reference {

// The same values in NHWC order under another shape.
Image reshape(const Image& input, const Shape& out);

}  // namespace pmt::reference
