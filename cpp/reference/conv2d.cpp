#include "reference/conv2d.hpp"

#include "reference/patch.hpp"
#include "reference/requantise.hpp"

namespace pmt::reference {

Image conv2d(const Image& input, int32_t input_zero, const ConvWeights& weights, const Window& window,
             const Requantisation& to, const Shape& out) {
  Image output = make_image(out);
  for (int32_t y = 0; y < out.height; ++y) {
    for (int32_t x = 0; x < out.width; ++x) {
      const Patch values = patch(input, input_zero, window, y, x);
      for (int32_t c = 0; c < out.channels; ++c) {
        const auto kernel = xt::view(weights, c, xt::all(), xt::all(), xt::all());
        const int64_t sum = xt::sum<int64_t>(values * kernel)();
        output(y, x, c) = requantise(sum, to, c);
      }
    }
  }
  return output;
}

}  // namespace pmt::reference
