#include "core/kernels/arm_dsp/arm_dsp.hpp"
#include "core/kernels/arm_dsp/dsp_requantize.hpp"
#include "core/kernels/dsp.hpp"
#include "core/kernels/images.hpp"

namespace pmt::arm_dsp {
namespace {

using namespace dsp;

constexpr int32_t rows_at_once = 4;

inline int32_t add_four_taps(uint32_t weights, Pair even, Pair odd, int32_t sum) {
  return add_products(widen_odd(weights), odd, add_products(widen_even(weights), even, sum));
}

// sums[i] = products of the input, zero point taken off, with row i of the weights.
void multiply_rows(const LinearArgs& args, const int8_t* weights, int32_t taps, int32_t* sums) {
  const Pair offset = pair(-args.input_zero, -args.input_zero);
  int32_t a = 0, b = 0, c = 0, d = 0, k = 0;
  for (; k + 4 <= taps; k += 4) {
    const uint32_t bytes = load_word(args.input + k);
    const Pair even = add_even(offset, bytes), odd = add_odd(offset, bytes);
    const int8_t* row = weights + k;
    a = add_four_taps(load_word(row), even, odd, a);
    b = add_four_taps(load_word(row + taps), even, odd, b);
    c = add_four_taps(load_word(row + 2 * taps), even, odd, c);
    d = add_four_taps(load_word(row + 3 * taps), even, odd, d);
  }
  sums[0] = a;
  sums[1] = b;
  sums[2] = c;
  sums[3] = d;
  for (; k < taps; ++k) {
    for (int32_t i = 0; i < rows_at_once; ++i) sums[i] += (args.input[k] - args.input_zero) * weights[i * taps + k];
  }
}

int32_t multiply_row(const LinearArgs& args, const int8_t* weights, int32_t taps) {
  int32_t sum = 0;
  for (int32_t k = 0; k < taps; ++k) sum += (args.input[k] - args.input_zero) * weights[k];
  return sum;
}

// put(channel, sum) for every channel of an op whose window covers its whole input.
template <typename Put>
void for_each_sum(const LinearArgs& args, Put put) {
  const int32_t taps = args.in.height * args.in.width * args.in.channels;
  const int8_t* weights = args.weights;
  int32_t c = args.channel_begin;
  for (; c + rows_at_once <= args.channel_end; c += rows_at_once, weights += rows_at_once * taps) {
    int32_t sums[rows_at_once];
    multiply_rows(args, weights, taps, sums);
    for (int32_t i = 0; i < rows_at_once; ++i) put(c + i, sums[i]);
  }
  for (; c < args.channel_end; ++c, weights += taps) put(c, multiply_row(args, weights, taps));
}

}  // namespace

void fully_connected(const LinearArgs& args) {
  for_each_image(args, [](const LinearArgs& image) {
    const Range range = Range::of(image);
    for_each_sum(image, [&](int32_t c, int32_t sum) {
      image.output[c] = range.from(sum, static_cast<float>(image.bias[c - image.channel_begin]), image.scales[c]);
    });
  });
}

void logits(const LinearArgs& args, float* logits) {
  for_each_image(args, [&](const LinearArgs& image) {
    for_each_sum(image, [&](int32_t c, int32_t sum) {
      const auto bias = static_cast<float>(image.bias[c - image.channel_begin]);
      logits[c] = (static_cast<float>(sum) + bias) * image.scales[c];
    });
    logits += image.out.channels;
  });
}

}  // namespace pmt::arm_dsp
