// Depthwise convolution, four channels at a time: a band of input rows is laid out anew, channel by
// channel, as int16 without the zero point and with its padding, so that a pair of columns meets a pair
// of weights in one instruction.
#include "core/base/linked/depthwise_sides.hpp"
#include "core/base/linked/parts.hpp"
#include "core/kernels/arm_dsp/arm_dsp.hpp"
#include "core/kernels/arm_dsp/dsp_plane.hpp"
#include "core/kernels/images.hpp"
#include "core/kernels/portable/portable.hpp"

namespace pmt::arm_dsp {
namespace {

using namespace dsp;

bool fits(const OpShape& shape) {
  const Window& w = shape.window;
  const bool known = (w.kernel_w == 3 && w.kernel_h == 3) || ((w.kernel_w == 5 || w.kernel_w == 7) && w.kernel_h <= 7);
  return known && (w.stride_w == 1 || w.stride_w == 2) && shape.in.channels == shape.out.channels &&
         shape.in.channels >= Band::channels;
}

int32_t pair_count(const Window& window) { return window.kernel_h * (window.kernel_w - 1); }

// The pairs of neighboring weights of four channels, one channel after the other.
void pair_weights(const LinearArgs& args, int32_t channel, Pair* pairs) {
  const int8_t* weights = args.weights + channel;
  ChannelWriter writer = {pairs, pair_count(args.window), 0};
  for (int32_t ky = 0; ky < args.window.kernel_h; ++ky) {
    uint32_t last = load_word(weights);
    weights += args.out.channels;
    for (int32_t kx = 1; kx < args.window.kernel_w; ++kx, weights += args.out.channels) {
      const uint32_t next = load_word(weights);
      writer.put(last, next);
      last = next;
    }
  }
}

// The two ways to compute a channel's rows.
struct Convolve {
  void (*blocks)(const Plane& plane);
  void (*exactly)(const Plane& plane, const Range& range, int32_t width);
};

template <int32_t kernel_w>
Convolve convolve_for(int32_t stride) {
  if (stride == 1) return {convolve_plane<kernel_w, 1>, convolve_exactly<kernel_w, 1>};
  return {convolve_plane<kernel_w, 2>, convolve_exactly<kernel_w, 2>};
}

bool has_side(const Window& window, int32_t side) {
  return is_part(linked::depthwise_sides & (1u << 3 | 1u << 5 | 1u << 7), window.kernel_w, side);
}

Convolve convolve_for(const Window& window) {
  if (has_side(window, 3)) return convolve_for<3>(window.stride_w);
  if (has_side(window, 5)) return convolve_for<5>(window.stride_w);
  if (has_side(window, 7)) return convolve_for<7>(window.stride_w);
  return {};  // by fits()
}

// `rows_after`: rows of the image after the plane's.
void compute_plane(const Convolve& convolve, const Plane& plane, const LinearArgs& args, int32_t rows_after) {
  const Range range = Range::of(args);
  const int32_t width = args.out.width;
  if (!range.is_whole()) {
    convolve.exactly(plane, range, width);
    return;
  }
  // Whole blocks write into the next rows, which are written again later; after the image's last row,
  // nothing may be written.
  const int32_t too_many = round_up(width, plane_block(args.window.kernel_w)) - width;
  const int32_t exact_rows = clamp((too_many + width - 1) / width - rows_after, 0, plane.out_rows);
  if (exact_rows == 0) {
    convolve.blocks(plane);
    return;
  }
  Plane part = plane;
  part.out_rows -= exact_rows;
  if (part.out_rows > 0) convolve.blocks(part);
  part.rows += part.out_rows * part.step_bytes / 4;
  part.output += part.out_rows * part.row_outputs;
  part.out_rows = exact_rows;
  convolve.exactly(part, range, width);
}

// Four channels, from `first` on.
void compute_channels(const LinearArgs& args, const Convolve& convolve, Band& band, int32_t first) {
  const int32_t channels = args.out.channels, row_outputs = args.out.width * channels;
  Pair* pairs = band.end();
  pair_weights(args, first, pairs);
  Plane plane = {};
  plane.zero = args.output_zero;
  plane.stride = channels;
  plane.row_bytes = band.row_bytes();
  plane.step_bytes = args.window.stride_h * plane.row_bytes;
  plane.span_bytes = round_up(args.out.width, plane_block(args.window.kernel_w)) * args.window.stride_w * 2;
  plane.row_outputs = row_outputs;
  plane.kernel_h = args.window.kernel_h;
  for (int32_t y = 0; y < args.out.height; y += band.out_rows()) {
    const int32_t left = args.out.height - y, rows = left < band.out_rows() ? left : band.out_rows();
    band.fill(first, y, rows);
    plane.out_rows = rows;
    for (int32_t i = 0; i < Band::channels; ++i) {
      plane.pairs = pairs + i * pair_count(args.window);
      plane.output = args.output + y * row_outputs + first + i;
      plane.scale = args.scales[first + i];
      plane.bias = static_cast<float>(args.bias[first + i]);
      plane.rows = band.plane(i);
      compute_plane(convolve, plane, args, left - rows);
    }
  }
}

void depthwise_image(const LinearArgs& args) {
  Band band(args, plane_block(args.window.kernel_w));
  const Convolve convolve = convolve_for(args.window);
  const int32_t channels = args.out.channels;
  for (int32_t c = 0; c < channels; c += Band::channels) {
    // Where channels are not a multiple of four: the last ones are computed together with some before.
    compute_channels(args, convolve, band, c + Band::channels <= channels ? c : channels - Band::channels);
  }
}

}  // namespace

int32_t depthwise_scratch_bytes(const OpShape& shape) {
  if (!fits(shape)) return portable::scratch_bytes(shape);
  const int32_t pairs = Band::channels * pair_count(shape.window) * static_cast<int32_t>(sizeof(Pair));
  return Band::bytes(shape, plane_block(shape.window.kernel_w)) + pairs;
}

void depthwise_conv2d(const LinearArgs& args) {
  if (!fits({OpKind::depthwise_conv2d, args.in, args.out, args.window})) {
    portable::depthwise_conv2d(args);
    return;
  }
  for_each_image(args, depthwise_image);
}

}  // namespace pmt::arm_dsp
