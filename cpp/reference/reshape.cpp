#include "reference/reshape.hpp"

namespace pmt::reference {

Image reshape(const Image& input, const Shape& out) {
  Image output = input;
  output.reshape({out.height, out.width, out.channels});
  return output;
}

}  // namespace pmt::reference
