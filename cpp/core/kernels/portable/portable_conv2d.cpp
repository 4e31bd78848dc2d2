#include "core/kernels/images.hpp"
#include "core/kernels/patch.hpp"
#include "core/kernels/portable/portable.hpp"
#include "core/kernels/requantize.hpp"

namespace pmt::portable {

namespace {

constexpr int32_t pixel_tile = 8;     // patches gathered at once, so that a weight row is widened once for all
constexpr int32_t channel_tile = 32;  // accumulators of a tile live on the stack

int32_t padded(int32_t taps) { return round_up(taps, 8); }

// Four patches against one weight row: its values are loaded once for all four.
inline void dot4(const int16_t* __restrict patches, int32_t stride, const int16_t* __restrict row, int32_t* sums) {
  const int16_t* __restrict a = patches;
  const int16_t* __restrict b = patches + stride;
  const int16_t* __restrict c = patches + 2 * stride;
  const int16_t* __restrict d = patches + 3 * stride;
  int32_t sum_a = 0, sum_b = 0, sum_c = 0, sum_d = 0;
  for (int32_t k = 0; k < stride; ++k) {
    sum_a += static_cast<int32_t>(a[k]) * row[k];
    sum_b += static_cast<int32_t>(b[k]) * row[k];
    sum_c += static_cast<int32_t>(c[k]) * row[k];
    sum_d += static_cast<int32_t>(d[k]) * row[k];
  }
  sums[0] = sum_a;
  sums[1] = sum_b;
  sums[2] = sum_c;
  sums[3] = sum_d;
}

struct Tile {
  const int16_t* patches;
  int32_t patch_stride;
  int32_t pixels;
  int8_t* output;  // first pixel of the tile
};

void compute_channels(const LinearArgs& args, const Tile& tile, int32_t taps, int32_t begin, int32_t end,
                      int16_t* weight_row) {
  int32_t sums[pixel_tile][channel_tile];
  for (int32_t c = begin; c < end; ++c) {
    const int8_t* row = args.weights + (c - args.channel_begin) * taps;
    for (int32_t k = 0; k < taps; ++k) weight_row[k] = row[k];
    for (int32_t p = 0; p < tile.pixels; p += 4) {  // patches beyond the last pixel are there, unused
      int32_t four[4];
      dot4(tile.patches + p * tile.patch_stride, tile.patch_stride, weight_row, four);
      for (int32_t i = 0; i < 4; ++i) sums[p + i][c - begin] = four[i];
    }
  }
  for (int32_t p = 0; p < tile.pixels; ++p) {
    requantize_row(sums[p], args.bias + (begin - args.channel_begin), args.scales + begin, end - begin,
                   args.output_zero, args.clamp_min, args.clamp_max, tile.output + p * args.out.channels + begin);
  }
}

void conv2d_image(const LinearArgs& args) {
  const int32_t taps = args.window.kernel_h * args.window.kernel_w * args.in.channels;
  const int32_t stride = padded(taps);
  auto* patches = static_cast<int16_t*>(args.scratch);
  int16_t* weight_row = patches + pixel_tile * stride;
  for (int32_t k = taps; k < stride; ++k) weight_row[k] = 0;  // the patches' tails may hold anything
  const int32_t positions = args.out.height * args.out.width;
  for (int32_t i = 0; i < pixel_tile * stride; ++i) patches[i] = 0;
  for (int32_t first = 0; first < positions; first += pixel_tile) {
    const int32_t pixels = positions - first < pixel_tile ? positions - first : pixel_tile;
    for (int32_t p = 0; p < pixels; ++p) {
      const int32_t position = first + p;
      gather_patch(args.input, args.in, args.window, args.input_zero, position / args.out.width,
                   position % args.out.width, patches + p * stride);
    }
    const Tile tile = {patches, stride, pixels, args.output + first * args.out.channels};
    for (int32_t c = args.channel_begin; c < args.channel_end; c += channel_tile) {
      const int32_t end = args.channel_end - c < channel_tile ? args.channel_end : c + channel_tile;
      compute_channels(args, tile, taps, c, end, weight_row);
    }
  }
}

// One output of a layer whose window covers the whole input.
int32_t dot_row(const LinearArgs& args, int32_t channel) {
  const int32_t taps = args.in.height * args.in.width * args.in.channels;
  const int8_t* row = args.weights + (channel - args.channel_begin) * taps;
  int32_t sum = 0;
  for (int32_t k = 0; k < taps; ++k) sum += (args.input[k] - args.input_zero) * row[k];
  return sum;
}

}  // namespace

int32_t scratch_bytes(const OpShape& shape) {
  if (shape.kind == OpKind::conv2d) {
    const int32_t taps = shape.window.kernel_h * shape.window.kernel_w * shape.in.channels;
    return (pixel_tile + 1) * padded(taps) * static_cast<int32_t>(sizeof(int16_t));
  }
  if (shape.kind == OpKind::depthwise_conv2d) {
    return round_up(shape.out.channels, 4) * static_cast<int32_t>(sizeof(int32_t));
  }
  return 0;
}

void conv2d(const LinearArgs& args) { for_each_image(args, conv2d_image); }

void fully_connected(const LinearArgs& args) {
  for_each_image(args, [](const LinearArgs& image) {
    for (int32_t c = image.channel_begin; c < image.channel_end; ++c) {
      image.output[c] = requantize(dot_row(image, c), image.bias[c - image.channel_begin], image.scales[c],
                                   image.output_zero, image.clamp_min, image.clamp_max);
    }
  });
}

void logits(const LinearArgs& args, float* logits) {
  for_each_image(args, [&](const LinearArgs& image) {
    for (int32_t c = image.channel_begin; c < image.channel_end; ++c) {
      const auto bias = static_cast<float>(image.bias[c - image.channel_begin]);
      logits[c] = (static_cast<float>(dot_row(image, c)) + bias) * image.scales[c];
    }
    logits += image.out.channels;
  });
}

namespace {

// sums[c] over the window at one output position; `multiplier` outputs share an input channel.
void window_sums(const LinearArgs& args, int32_t out_y, int32_t out_x, int32_t* __restrict sums) {
  const int32_t channels = args.out.channels;
  const int32_t multiplier = channels / args.in.channels;
  const int32_t top = out_y * args.window.stride_h - args.window.pad_top;
  const int32_t left = out_x * args.window.stride_w - args.window.pad_left;
  for (int32_t c = 0; c < channels; ++c) sums[c] = 0;
  for (int32_t ky = 0; ky < args.window.kernel_h; ++ky) {
    const int32_t y = top + ky;
    if (y < 0 || y >= args.in.height) continue;
    for (int32_t kx = 0; kx < args.window.kernel_w; ++kx) {
      const int32_t x = left + kx;
      if (x < 0 || x >= args.in.width) continue;
      const int8_t* __restrict pixel = args.input + (y * args.in.width + x) * args.in.channels;
      const int8_t* __restrict weights = args.weights + (ky * args.window.kernel_w + kx) * channels;
      if (multiplier == 1) {
        for (int32_t c = 0; c < channels; ++c) {
          const auto difference = static_cast<int16_t>(pixel[c] - args.input_zero);
          sums[c] += difference * static_cast<int16_t>(weights[c]);
        }
      } else {
        for (int32_t c = 0; c < channels; ++c) sums[c] += (pixel[c / multiplier] - args.input_zero) * weights[c];
      }
    }
  }
}

void depthwise_conv2d_image(const LinearArgs& args) {
  auto* sums = static_cast<int32_t*>(args.scratch);
  int8_t* out = args.output;
  for (int32_t y = 0; y < args.out.height; ++y) {
    for (int32_t x = 0; x < args.out.width; ++x) {
      window_sums(args, y, x, sums);
      requantize_row(sums, args.bias, args.scales, args.out.channels, args.output_zero, args.clamp_min, args.clamp_max,
                     out);
      out += args.out.channels;
    }
  }
}

}  // namespace

void depthwise_conv2d(const LinearArgs& args) { for_each_image(args, depthwise_conv2d_image); }

}  // namespace pmt::portable
