#include "core/kernels/images.hpp"
#include "core/kernels/portable/portable.hpp"
#include "core/kernels/requantize.hpp"

namespace pmt::portable {
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
