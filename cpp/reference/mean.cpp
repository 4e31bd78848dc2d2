#include "reference/mean.hpp"

#include "reference/requantize.hpp"

namespace pmt::reference {
namespace {

Vector<float> channel_means(const Image& input) {
  const Vector<int64_t> sums = xt::sum<int64_t>(input, {0, 1});
  const auto count = static_cast<float>(input.shape(0) * input.shape(1));
  return xt::cast<float>(sums) / count;
}

}  // namespace

Image mean(const Image& input, const OutputRange& range) {
  const Vector<float> means = channel_means(input);
  Image output = make_image({1, 1, shape_of(input).channels});
  // The stored integers average to a stored integer: there is no zero point to add.
  const OutputRange stored = {0, range.low, range.high};
  for (size_t c = 0; c < means.size(); ++c) output(0, 0, c) = quantize(means(c), stored);
  return output;
}

Image rescaled_mean(const Image& input, int32_t input_zero, float ratio, const OutputRange& range) {
  const Vector<float> means = channel_means(input);
  Image output = make_image({1, 1, shape_of(input).channels});
  for (size_t c = 0; c < means.size(); ++c) {
    output(0, 0, c) = quantize((means(c) - static_cast<float>(input_zero)) * ratio, range);
  }
  return output;
}

}  // namespace pmt::reference
