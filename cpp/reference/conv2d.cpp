#include "reference/conv2d.hpp"

#include "reference/patch.hpp"
#include "reference/requantize.hpp"

namespace pmt::reference {

Sums conv2d_sums(const Image& input, int32_t input_zero, const ConvWeights& weights, const Window& window,
                 const Shape& out) {
  Sums sums(make_image(out).shape());
  for (int32_t y = 0; y < out.height; ++y) {
    for (int32_t x = 0; x < out.width; ++x) {
      const Patch values = patch(input, input_zero, window, y, x);
      for (int32_t c = 0; c < out.channels; ++c) {
        const auto kernel = xt::view(weights, c, xt::all(), xt::all(), xt::all());
        sums(y, x, c) = xt::sum<int64_t>(values * kernel)();
      }
    }
  }
  return sums;
}

Image conv2d(const Image& input, int32_t input_zero, const ConvWeights& weights, const Window& window,
             const Requantization& to, const Shape& out) {
  return requantize(conv2d_sums(input, input_zero, weights, window, out), to);
}

}  // namespace pmt::reference
