#include "reference/depthwise_conv2d.hpp"

#include "reference/patch.hpp"
#include "reference/requantize.hpp"

namespace pmt::reference {

Sums depthwise_conv2d_sums(const Image& input, int32_t input_zero, const DepthwiseWeights& weights,
                           const Window& window, const Shape& out) {
  const int32_t multiplier = out.channels / shape_of(input).channels;
  Sums sums(make_image(out).shape());
  for (int32_t y = 0; y < out.height; ++y) {
    for (int32_t x = 0; x < out.width; ++x) {
      const Patch values = patch(input, input_zero, window, y, x);
      for (int32_t c = 0; c < out.channels; ++c) {
        const auto seen = xt::view(values, xt::all(), xt::all(), c / multiplier);
        const auto kernel = xt::view(weights, xt::all(), xt::all(), c);
        sums(y, x, c) = xt::sum<int64_t>(seen * kernel)();
      }
    }
  }
  return sums;
}

Image depthwise_conv2d(const Image& input, int32_t input_zero, const DepthwiseWeights& weights, const Window& window,
                       const Requantization& to, const Shape& out) {
  return requantize(depthwise_conv2d_sums(input, input_zero, weights, window, out), to);
}

}  // namespace pmt::reference
