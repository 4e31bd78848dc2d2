#pragma once

#include "reference/tensors.hpp"

namespace pmt::reference {

struct Quantized {
  Image values;
  int32_t zero_point;
  float scale;
};

// quantize(((x1 - z1) * s1 + (x2 - z2) * s2) / output_scale), every step rounded to float32.
Image add(const Quantized& first, const Quantized& second, float output_scale, const OutputRange& range);

}  // namespace pmt::reference
