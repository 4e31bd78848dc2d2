#include "reference/pooling.hpp"

#include <algorithm>

#include "reference/requantize.hpp"

namespace pmt::reference {
namespace {

// One channel of the input under a window.
xt::xtensor<int32_t, 2> pooled_values(const Image& input, const Window& window, int32_t out_y, int32_t out_x,
                                      int32_t channel) {
  const Shape in = shape_of(input);
  const int32_t top = out_y * window.stride_h - window.pad_top;
  const int32_t left = out_x * window.stride_w - window.pad_left;
  return xt::view(input, xt::range(std::max(top, 0), std::min(top + window.kernel_h, in.height)),
                  xt::range(std::max(left, 0), std::min(left + window.kernel_w, in.width)), channel);
}

template <typename Reduce>
Image pool(const Image& input, const Window& window, const Shape& out, Reduce reduce) {
  Image output = make_image(out);
  for (int32_t y = 0; y < out.height; ++y) {
    for (int32_t x = 0; x < out.width; ++x) {
      for (int32_t c = 0; c < out.channels; ++c) output(y, x, c) = reduce(pooled_values(input, window, y, x, c));
    }
  }
  return output;
}

}  // namespace

Image average_pool(const Image& input, const Window& window, const Shape& out, const ClampBounds& bounds) {
  return pool(input, window, out, [&](const xt::xtensor<int32_t, 2>& values) {
    const int32_t sum = xt::sum(values)();
    return quantize(static_cast<float>(sum) / static_cast<float>(values.size()), {0, bounds.low, bounds.high});
  });
}

Image max_pool(const Image& input, const Window& window, const Shape& out, const ClampBounds& bounds) {
  return pool(input, window, out, [&](const xt::xtensor<int32_t, 2>& values) {
    return static_cast<int8_t>(std::clamp(xt::amax(values)(), bounds.low, bounds.high));
  });
}

}  // namespace pmt::reference
