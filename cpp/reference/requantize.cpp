#include "reference/requantize.hpp"

#include <algorithm>
#include <cmath>

namespace pmt::reference {

int8_t quantize(float steps, const OutputRange& range) {
  const float bounded = std::clamp(steps, -1e6f, 1e6f);
  const auto rounded = static_cast<int32_t>(std::nearbyint(bounded));
  return static_cast<int8_t>(std::clamp(rounded + range.zero_point, range.low, range.high));
}

int8_t requantize(int64_t accumulator, const Requantization& to, int32_t channel) {
  const float sum = static_cast<float>(accumulator) + static_cast<float>(to.bias(channel));
  return quantize(sum * to.scales(channel), to.range);
}

Image requantize(const Sums& accumulators, const Requantization& to) {
  Image output(accumulators.shape());
  for (size_t y = 0; y < output.shape(0); ++y) {
    for (size_t x = 0; x < output.shape(1); ++x) {
      for (size_t c = 0; c < output.shape(2); ++c) {
        output(y, x, c) = requantize(accumulators(y, x, c), to, static_cast<int32_t>(c));
      }
    }
  }
  return output;
}

}  // namespace pmt::reference
