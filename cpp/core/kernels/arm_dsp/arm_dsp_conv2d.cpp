#include "core/kernels/arm_dsp/arm_dsp.hpp"
#include "core/kernels/arm_dsp/dsp_columns.hpp"
#include "core/kernels/arm_dsp/dsp_dot.hpp"
#include "core/kernels/arm_dsp/dsp_requantize.hpp"
#include "core/kernels/images.hpp"
#include "core/kernels/portable/portable.hpp"

namespace pmt::arm_dsp {
namespace {

using namespace dsp;

int32_t tap_count(const Window& window, int32_t in_channels) { return window.kernel_h * window.kernel_w * in_channels; }

// Each position reads one run of bytes, wherever it is.
bool is_pointwise(const Window& w) { return w.kernel_h == 1 && w.kernel_w == 1 && w.pad_top == 0 && w.pad_left == 0; }

// One position, all of the input.
bool covers_input(const LinearArgs& args) {
  const Window& w = args.window;
  return w.kernel_h == args.in.height && w.kernel_w == args.in.width && w.pad_top == 0 && w.pad_left == 0 &&
         args.out.height == 1 && args.out.width == 1;
}

inline void copy_bytes(const int8_t* from, int32_t count, int8_t* to) {
  if (count < 4) {
    for (int32_t k = 0; k < count; ++k) to[k] = from[k];
    return;
  }
  const int8_t* last = from + count - 4;
  int8_t* last_to = to + count - 4;
  for (; from < last; from += 4, to += 4) store_word(to, load_word(from));
  store_word(last_to, load_word(last));
}

void fill_bytes(int8_t value, int32_t count, int8_t* to) {
  if (count > 0) __builtin_memset(to, value, static_cast<uint32_t>(count));
}

// The bytes under a window that reaches into the padding, which is the zero point.
void copy_padded(const LinearArgs& args, int32_t top, int32_t left, int8_t* patch) {
  const int32_t channels = args.in.channels, row = args.window.kernel_w * channels;
  const auto zero = static_cast<int8_t>(args.input_zero);
  const int32_t right = left + args.window.kernel_w;
  const int32_t before = left < 0 ? -left * channels : 0;
  const int32_t after = right > args.in.width ? (right - args.in.width) * channels : 0;
  const int32_t inside = row - before - after;
  const int8_t* from = args.input + (top * args.in.width + left) * channels + before;
  for (int32_t y = top; y < top + args.window.kernel_h; ++y, patch += row, from += args.in.width * channels) {
    if (y < 0 || y >= args.in.height || inside <= 0) {
      fill_bytes(zero, row, patch);
      continue;
    }
    fill_bytes(zero, before, patch);
    copy_bytes(from, inside, patch + before);
    fill_bytes(zero, after, patch + before + inside);
  }
}

void copy_patch(const LinearArgs& args, int32_t top, int32_t left, int8_t* patch) {
  const Window& w = args.window;
  if (top < 0 || left < 0 || top + w.kernel_h > args.in.height || left + w.kernel_w > args.in.width) {
    copy_padded(args, top, left, patch);
    return;
  }
  const int32_t row = w.kernel_w * args.in.channels, step = args.in.width * args.in.channels;
  const int8_t* from = args.input + top * step + left * args.in.channels;
  for (int32_t ky = 0; ky < w.kernel_h; ++ky, patch += row, from += step) copy_bytes(from, row, patch);
}

// Where a tile's positions are.
struct Cursor {
  int32_t x, y;

  void next(int32_t width) {
    if (++x < width) return;
    x = 0;
    ++y;
  }
};

// The columns of the next `count` positions.
void fill_columns(const LinearArgs& args, int32_t taps, Cursor& at, int32_t count, uint32_t* columns, int8_t* patch) {
  const Window& w = args.window;
  const Pair offset = pair(-args.input_zero, -args.input_zero);
  for (int32_t p = 0; p < count; ++p, at.next(args.out.width)) {
    copy_patch(args, at.y * w.stride_h - w.pad_top, at.x * w.stride_w - w.pad_left, patch);
    widen_patch(patch, taps, offset, columns + 2 * p);
  }
}

void fill_pointwise(const LinearArgs& args, int32_t taps, Cursor& at, int32_t count, uint32_t* columns) {
  const Pair offset = pair(-args.input_zero, -args.input_zero);
  const int32_t step = args.window.stride_w * taps, row = args.window.stride_h * args.in.width * taps;
  const int8_t* pixel = args.input + at.y * row + at.x * step;
  for (int32_t p = 0; p < count; ++p) {
    widen_patch(pixel, taps, offset, columns + 2 * p);
    pixel += step;
    at.next(args.out.width);
    if (at.x == 0) pixel = args.input + at.y * row;
  }
}

// All channels of one to four positions.
void compute_positions(const LinearArgs& args, int32_t taps, const uint32_t* columns, int32_t count, int8_t* output) {
  const Range range = Range::of(args);
  const int8_t* weights = args.weights;
  for (int32_t c = args.channel_begin; c < args.channel_end; ++c, weights += taps) {
    int32_t sums[column_pixels] = {0, 0, 0, 0};
    add_dots(weights, taps, columns, sums);
    const auto bias = static_cast<float>(args.bias[c - args.channel_begin]);
    for (int32_t p = 0; p < count; ++p) {
      output[p * args.out.channels + c] = range.from(sums[p], bias, args.scales[c]);
    }
  }
}

using ComputeTile = void (*)(const Tile&);

ComputeTile tile_function(int32_t taps) {
  const bool even = taps / 4 % 2 == 0;
  if (taps % 4 == 0) return even ? compute_tile<true, false> : compute_tile<false, false>;
  return even ? compute_tile<true, true> : compute_tile<false, true>;
}

void conv2d_image(const LinearArgs& args) {
  const int32_t taps = tap_count(args.window, args.in.channels);
  auto* columns = static_cast<uint32_t*>(args.scratch);
  auto* patch = reinterpret_cast<int8_t*>(columns + 2 * column_pixels * column_groups(taps));
  const int32_t positions = args.out.height * args.out.width, rest = taps % 4;
  Cursor at = {0, 0};
  const bool pointwise = is_pointwise(args.window), whole = Range::of(args).is_whole();
  const ComputeTile compute = tile_function(taps);
  Tile tile = {args.weights,
               args.bias,
               args.scales + args.channel_begin,
               args.output + args.channel_begin,
               columns,
               args.scales + args.channel_end,
               taps - rest,
               rest - 4,
               rest,
               args.out.channels,
               args.output_zero};
  for (int32_t first = 0; first < positions; first += column_pixels) {
    const int32_t count = positions - first < column_pixels ? positions - first : column_pixels;
    if (pointwise) {
      fill_pointwise(args, taps, at, count, columns);
    } else {
      fill_columns(args, taps, at, count, columns, patch);
    }
    if (whole && count == column_pixels) {
      compute(tile);
    } else {
      compute_positions(args, taps, columns, count, args.output + first * args.out.channels);
    }
    tile.output += column_pixels * args.out.channels;
  }
}

}  // namespace

int32_t conv2d_scratch_bytes(const OpShape& shape) {
  const int32_t taps = tap_count(shape.window, shape.in.channels);
  if (taps < least_taps) return portable::scratch_bytes(shape);
  const int32_t columns = 2 * column_pixels * column_groups(taps) * static_cast<int32_t>(sizeof(uint32_t));
  return columns + (is_pointwise(shape.window) ? 0 : taps);
}

void conv2d(const LinearArgs& args) {
  if (tap_count(args.window, args.in.channels) < least_taps) {
    portable::conv2d(args);
  } else if (covers_input(args)) {
    fully_connected(args);
  } else {
    for_each_image(args, conv2d_image);
  }
}

}  // namespace pmt::arm_dsp
