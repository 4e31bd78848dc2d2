// The inputs of a convolution at one output position.
#pragma once

#include "reference/tensors.hpp"

namespace pmt::reference {

using Patch = xt::xtensor<int32_t, 3>;  // [kernel_h][kernel_w][channels]

// Input values minus the zero point; 0 where the window reaches into the padding.
Patch patch(const Image& input, int32_t zero_point, const Window& window, int32_t out_y, int32_t out_x);

}  // namespace pmt::reference
