// The input values under one position of a convolution window, zero point removed.
#pragma once

#include "core/kernels/table.hpp"

namespace pmt {

// patch[kernel_h][kernel_w][channels]; padding gives 0.
inline void gather_patch(const int8_t* input, const Shape& in, const Window& window, int32_t zero_point, int32_t out_y,
                         int32_t out_x, int16_t* patch) {
  const int32_t top = out_y * window.stride_h - window.pad_top;
  const int32_t left = out_x * window.stride_w - window.pad_left;
  for (int32_t ky = 0; ky < window.kernel_h; ++ky) {
    for (int32_t kx = 0; kx < window.kernel_w; ++kx) {
      const int32_t y = top + ky, x = left + kx;
      if (y < 0 || y >= in.height || x < 0 || x >= in.width) {
        for (int32_t c = 0; c < in.channels; ++c) patch[c] = 0;
      } else {
        const int8_t* pixel = input + (y * in.width + x) * in.channels;
        for (int32_t c = 0; c < in.channels; ++c) patch[c] = static_cast<int16_t>(pixel[c] - zero_point);
      }
      patch += in.channels;
    }
  }
}

}  // namespace pmt
