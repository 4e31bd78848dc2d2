#include "reference/fully_connected.hpp"

#include "reference/requantize.hpp"

namespace pmt::reference {

Vector<int64_t> fully_connected_sums(const Image& input, int32_t input_zero, const DenseWeights& weights) {
  const Vector<int64_t> values = xt::cast<int64_t>(xt::flatten(input)) - input_zero;
  return xt::sum<int64_t>(values * weights, {1});
}

Image fully_connected(const Image& input, int32_t input_zero, const DenseWeights& weights, const Requantization& to) {
  const Vector<int64_t> sums = fully_connected_sums(input, input_zero, weights);
  const auto channels = static_cast<int32_t>(weights.shape(0));
  Image output = make_image({1, 1, channels});
  for (int32_t c = 0; c < channels; ++c) output(0, 0, c) = requantize(sums(c), to, c);
  return output;
}

Vector<float> logits(const Image& input, int32_t input_zero, const DenseWeights& weights, const Vector<int32_t>& bias,
                     const Vector<float>& scales) {
  const Vector<int64_t> sums = fully_connected_sums(input, input_zero, weights);
  return (xt::cast<float>(sums) + xt::cast<float>(bias)) * scales;
}

}  // namespace pmt::reference
