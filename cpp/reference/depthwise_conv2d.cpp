#include "reference/depthwise_conv2d.hpp"

#include "reference/patch.hpp"
#include "reference/requantise.hpp"

namespace pmt::reference {

Image depthwise_conv2d(const Image& input, int32_t input_zero, const DepthwiseWeights& weights, const Window& window,
                       const Requantisation& to, const Shape& out) {
  const int32_t multiplier = out.channels / shape_of(input).channels;
  Image output = make_image(out);
  for (int32_t y = 0; y < out.height; ++y) {
    for (int32_t x = 0; x < out.width; ++x) {
      const Patch values = patch(input, input_zero, window, y, x);
      for (int32_t c = 0; c < out.channels; ++c) {
        const auto seen = xt::view(values, xt::all(), xt::all(), c / multiplier);
        const auto kernel = xt::view(weights, xt::all(), xt::all(), c);
        const int64_t sum = xt::sum<int64_t>(seen * kernel)();
        output(y, x, c) = requantise(sum, to, c);
      }
    }
  }
  return output;
}

}  // namespace pmt::reference
