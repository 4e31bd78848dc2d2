#include "reference/add.hpp"

#include <algorithm>

#include "reference/requantize.hpp"

namespace pmt::reference {
namespace {

xt::xtensor<float, 3> real(const Quantized& tensor) {
  return xt::cast<float>(xt::cast<int32_t>(tensor.values) - tensor.zero_point) * tensor.scale;
}

}  // namespace

Image add(const Quantized& first, const Quantized& second, float output_scale, const OutputRange& range) {
  const xt::xtensor<float, 3> sum = real(first) + real(second);
  const xt::xtensor<float, 3> steps = sum / output_scale;
  Image output = make_image(shape_of(first.values));
  std::transform(steps.begin(), steps.end(), output.begin(), [&](float value) { return quantize(value, range); });
  return output;
}

}  // namespace pmt::reference
