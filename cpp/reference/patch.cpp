#include "reference/patch.hpp"

namespace pmt::reference {

Patch patch(const Image& input, int32_t zero_point, const Window& window, int32_t out_y, int32_t out_x) {
  const Shape in = shape_of(input);
  const Shape size = {window.kernel_h, window.kernel_w, in.channels};
  Patch values = xt::zeros<int32_t>(make_image(size).shape());
  for (int32_t ky = 0; ky < window.kernel_h; ++ky) {
    for (int32_t kx = 0; kx < window.kernel_w; ++kx) {
      const int32_t y = out_y * window.stride_h - window.pad_top + ky;
      const int32_t x = out_x * window.stride_w - window.pad_left + kx;
      if (y < 0 || y >= in.height || x < 0 || x >= in.width) continue;
      for (int32_t c = 0; c < in.channels; ++c) values(ky, kx, c) = input(y, x, c) - zero_point;
    }
  }
  return values;
}

}  // namespace pmt::reference
