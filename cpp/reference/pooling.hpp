// Pooling over the part of a window that lies inside the input: padding is not counted.
#pragma once

#include "reference/tensors.hpp"

namespace pmt::reference {

struct ClampBounds {
  int32_t low, high;
};

Image average_pool(const Image& input, const Window& window, const Shape& out, const ClampBounds& bounds);

Image max_pool(const Image& input, const Window& window, const Shape& out, const ClampBounds& bounds);

}  // namespace pmt::reference
