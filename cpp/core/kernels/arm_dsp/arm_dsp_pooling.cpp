// Pooling of four channels at once. What does not fit that goes to the portable kernels.
#include "core/base/arithmetic.hpp"
#include "core/kernels/arm_dsp/arm_dsp.hpp"
#include "core/kernels/dsp.hpp"
#include "core/kernels/images.hpp"
#include "core/kernels/portable/portable.hpp"

namespace pmt::arm_dsp {
namespace {

using namespace dsp;

constexpr int32_t channels_at_once = 4;
constexpr int32_t most_terms = 256;  // of a sum of int8 that int16 holds

// The part of a pooling window that lies inside the input.
struct Part {
  const int8_t* first;
  int32_t rows, columns;
  int32_t row, column;  // steps, in bytes

  int32_t count() const { return rows * columns; }
};

Part part_of(const PoolArgs& args, int32_t out_y, int32_t out_x) {
  const Window& w = args.window;
  const int32_t y = out_y * w.stride_h - w.pad_top, x = out_x * w.stride_w - w.pad_left;
  const int32_t top = y < 0 ? 0 : y, left = x < 0 ? 0 : x;
  const int32_t bottom = y + w.kernel_h > args.in.height ? args.in.height : y + w.kernel_h;
  const int32_t right = x + w.kernel_w > args.in.width ? args.in.width : x + w.kernel_w;
  const int32_t column = args.in.channels, row = args.in.width * column;
  return {args.input + top * row + left * column, bottom - top, right - left, row, column};
}

// step(bytes of four channels) at every position.
template <typename Step>
inline void for_each_position(const Part& part, int32_t channel, Step step) {
  for (int32_t y = 0; y < part.rows; ++y) {
    const int8_t* at = part.first + y * part.row + channel;
    for (int32_t x = 0; x < part.columns; ++x, at += part.column) step(load_word(at));
  }
}

uint32_t largest(const Part& part, int32_t channel) {
  uint32_t result = four_bytes(-128);
  for_each_position(part, channel, [&](uint32_t bytes) { result = larger_bytes(result, bytes); });
  return result;
}

void add_up(const Part& part, int32_t channel, int32_t* sums) {
  Pair even = 0, odd = 0;
  for_each_position(part, channel, [&](uint32_t bytes) {
    even = add_even(even, bytes);
    odd = add_odd(odd, bytes);
  });
  sums[0] = first(even);
  sums[1] = first(odd);
  sums[2] = second(even);
  sums[3] = second(odd);
}

// body(first of four channels); the last four may overlap those before them.
template <typename Body>
void for_each_four(int32_t channels, Body body) {
  for (int32_t c = 0; c < channels; c += channels_at_once) {
    body(c + channels_at_once <= channels ? c : channels - channels_at_once);
  }
}

template <typename Body>
void for_each_part(const PoolArgs& args, Body body) {
  for_each_image(args, [&](const PoolArgs& image) {
    int8_t* out = image.output;
    for (int32_t y = 0; y < image.out.height; ++y) {
      for (int32_t x = 0; x < image.out.width; ++x, out += image.out.channels) body(part_of(image, y, x), out);
    }
  });
}

void store_averages(const PoolArgs& args, const Part& part, int32_t channel, int8_t* out) {
  int32_t sums[channels_at_once];
  add_up(part, channel, sums);
  const auto count = static_cast<float>(part.count());
  for (int32_t i = 0; i < channels_at_once; ++i) {
    const int32_t rounded = round_even(static_cast<float>(sums[i]) / count);
    out[channel + i] = static_cast<int8_t>(clamp(rounded, args.clamp_min, args.clamp_max));
  }
}

void store_means(const PoolArgs& args, const Part& part, int32_t channel) {
  int32_t sums[channels_at_once];
  add_up(part, channel, sums);
  const auto count = static_cast<float>(part.count());
  for (int32_t i = 0; i < channels_at_once; ++i) {
    const float mean = static_cast<float>(sums[i]) / count;
    const float real = args.same_quantization ? mean : (mean - static_cast<float>(args.input_zero)) * args.ratio;
    const int32_t rounded = add_saturating(round_even(real), args.same_quantization ? 0 : args.output_zero);
    args.output[channel + i] = static_cast<int8_t>(clamp(rounded, args.clamp_min, args.clamp_max));
  }
}

}  // namespace

void max_pool(const PoolArgs& args) {
  if (args.in.channels < channels_at_once) return portable::max_pool(args);
  const uint32_t low = four_bytes(args.clamp_min), high = four_bytes(args.clamp_max);
  for_each_part(args, [&](const Part& part, int8_t* out) {
    for_each_four(args.in.channels,
                  [&](int32_t c) { store_word(out + c, smaller_bytes(larger_bytes(largest(part, c), low), high)); });
  });
}

void average_pool(const PoolArgs& args) {
  const bool fits = args.window.kernel_h * args.window.kernel_w <= most_terms;
  if (args.in.channels < channels_at_once || !fits) return portable::average_pool(args);
  for_each_part(args, [&](const Part& part, int8_t* out) {
    for_each_four(args.in.channels, [&](int32_t c) { store_averages(args, part, c, out); });
  });
}

void mean(const PoolArgs& args) {
  const bool fits = args.in.height * args.in.width <= most_terms;
  if (args.in.channels < channels_at_once || !fits) return portable::mean(args);
  for_each_image(args, [](const PoolArgs& image) {
    const int32_t column = image.in.channels, row = image.in.width * column;
    const Part all = {image.input, image.in.height, image.in.width, row, column};
    for_each_four(image.in.channels, [&](int32_t c) { store_means(image, all, c); });
  });
}

}  // namespace pmt::arm_dsp
