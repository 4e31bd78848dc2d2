#include "reference/pad.hpp"

namespace pmt::reference {

Image pad(const Image& input, int32_t zero_point, const Padding& padding) {
  const Shape in = shape_of(input);
  Image output =
      make_image({in.height + padding.top + padding.bottom, in.width + padding.left + padding.right, in.channels});
  output.fill(static_cast<int8_t>(zero_point));
  xt::view(output, xt::range(padding.top, padding.top + in.height), xt::range(padding.left, padding.left + in.width),
           xt::all()) = input;
  return output;
}

}  // namespace pmt::reference
