#pragma once

#include "reference/tensors.hpp"

namespace pmt::reference {

struct Quantised {
  Image values;
  int32_t zero_point;
  float scale;
};

// quantise(((x1 - z1) * s1 + (x2 - z2) * s2) / output_scale), every step rounded to float32.
Image add(const Quantised& first, const Quantised& second, float output_scale, const OutputRange& range);

}  // namespace pmt::reference
