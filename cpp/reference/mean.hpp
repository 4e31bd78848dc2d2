#pragma once

#include "reference/tensors.hpp"

namespace pmt::reference {

// Mean over height and width where input and output are quantized alike.
Image mean(const Image& input, const OutputRange& range);

// quantize((mean - input_zero) * ratio), ratio = s_x / s_y.
Image rescaled_mean(const Image& input, int32_t input_zero, float ratio, const OutputRange& range);

}  // namespace pmt::reference
