// conv2d, fully_connected and logits as a packed product: activations are brought into a buffer in
// the form that Isa::dot wants, a block of positions at a time, and multiplied panel by panel.
#pragma once

namespace pmt::host {

template <typename Isa>
class Gemm {
 public:
  using Activation = typename Isa::Activation;
  using Packing = GemmPacking<Isa>;

  static int32_t scratch_bytes(const OpShape& op) {
    const Geometry geometry = geometry_of(op);
    return geometry.buffer_bytes + 2 * static_cast<int32_t>(sizeof(int32_t)) * geometry.positions;
  }

  static void conv2d(const LinearArgs& args) {
    const OpShape op = {OpKind::conv2d, args.in, args.out, args.window};
    if (Packing::covers_input(op)) {
      run_matrix(args, op, 1);
    } else if (Packing::is_pointwise(op)) {
      run_matrix(args, op, args.in.height * args.in.width);
    } else {
      for (int32_t i = 0; i < args.batch.images; ++i) run_image(args, op, i);
    }
  }

  static void fully_connected(const LinearArgs& args) {
    run_matrix(args, {OpKind::fully_connected, args.in, args.out, args.window}, 1);
  }

  static void logits(const LinearArgs& args, float* logits) {
    const OpShape op = {OpKind::fully_connected, args.in, args.out, args.window};
    const GemmShape shape = Packing::shape_of(op);
    const Geometry geometry = geometry_of(op);
    for (int32_t row = 0; row < args.batch.images; row += geometry.positions) {
      const int32_t left = args.batch.images - row;
      const int32_t rows = left < geometry.positions ? left : geometry.positions;
      const Block block = fill_rows(args, geometry, shape, 1, row, rows);
      run_panels(args, shape, block, [&](int32_t channel) {
        return LogitOutput<Isa>{logits + static_cast<int64_t>(row) * args.out.channels + channel, args.out.channels};
      });
    }
  }

 private:
  static constexpr int32_t block_bytes = 16384;  // of activations: half a first-level cache
  static constexpr int32_t band_bytes = 32768;   // of convolutions with windows, read kernel_h times

  static constexpr int32_t most_rows = Isa::rows(1);

  struct Geometry {
    int32_t positions;     // of a block or band, at most
    int32_t row_stride;    // of a matrix: activations from a position to the next; else of an input row
    int32_t buffer_bytes;  // with room for the last group
  };

  struct Block {
    Activations<Isa> activations;
    int32_t* in_offsets;
    int32_t* out_offsets;
    int32_t positions;
  };

  static int32_t rounded(int32_t bytes) { return (bytes + 63) / 64 * 64; }

  static Geometry geometry_of(const OpShape& op) {
    const GemmShape shape = Packing::shape_of(op);
    const auto size = static_cast<int32_t>(sizeof(Activation));
    const int32_t last = Packing::groups(shape) * Isa::group;  // activations that a run's groups read
    if (Packing::covers_input(op) || Packing::is_pointwise(op)) {
      const int32_t row = (shape.segments - 1) * shape.segment_taps + last;
      const int32_t fitting = block_bytes / (row * size);
      const int32_t positions = fitting < most_rows ? most_rows : fitting / most_rows * most_rows;
      return {positions, row, rounded(positions * row * size + 64)};
    }
    const Window& w = op.window;
    const int32_t row = ((op.out.width - 1) * w.stride_w + w.kernel_w) * op.in.channels;
    const int32_t fitting = (band_bytes / (row * size) - w.kernel_h) / w.stride_h + 1;
    const int32_t rows = fitting < 1 ? 1 : (fitting > op.out.height ? op.out.height : fitting);
    const int32_t in_rows = (rows - 1) * w.stride_h + w.kernel_h;
    return {rows * op.out.width, row, rounded((in_rows * row + last) * size + 64)};
  }

  static void widen(const int8_t* values, int32_t count, int32_t zero_point, Activation* wide) {
    int32_t i = 0;
    for (; i + 16 <= count; i += 16) Isa::widen16(values + i, zero_point, wide + i);
    if (i == count) return;
    if (count >= 16) {  // the last 16, some of them a second time
      Isa::widen16(values + count - 16, zero_point, wide + count - 16);
      return;
    }
    for (; i < count; ++i) wide[i] = Isa::widen(values[i], zero_point);
  }

  static Block block_in(const LinearArgs& args, const Geometry& geometry, const GemmShape& shape,
                        int32_t segment_stride) {
    auto* buffer = static_cast<Activation*>(args.scratch);
    auto* offsets = reinterpret_cast<int32_t*>(static_cast<uint8_t*>(args.scratch) + geometry.buffer_bytes);
    return {{buffer, shape.segments, Packing::groups(shape), segment_stride}, offsets, offsets + geometry.positions, 0};
  }

  // Positions `first` .. `first + count` of all images, each its taps one behind another.
  static Block fill_rows(const LinearArgs& args, const Geometry& geometry, const GemmShape& shape,
                         int32_t image_positions, int32_t first, int32_t count) {
    Block block = block_in(args, geometry, shape, shape.segment_taps);
    block.positions = count;
    auto* buffer = static_cast<Activation*>(args.scratch);
    const int32_t taps = shape.taps();
    int32_t row = 0;
    while (row < count) {
      const int32_t image = (first + row) / image_positions, position = (first + row) % image_positions;
      const int32_t run = image_positions - position < count - row ? image_positions - position : count - row;
      const int8_t* in = args.input + static_cast<int64_t>(image) * args.batch.input_stride + position * taps;
      if (geometry.row_stride == taps) {
        widen(in, run * taps, args.input_zero, buffer + row * taps);
      } else {
        for (int32_t i = 0; i < run; ++i) {
          widen(in + i * taps, taps, args.input_zero, buffer + (row + i) * geometry.row_stride);
        }
      }
      for (int32_t i = 0; i < run; ++i) {
        block.in_offsets[row + i] = (row + i) * geometry.row_stride;
        block.out_offsets[row + i] = image * args.batch.output_stride + (position + i) * args.out.channels;
      }
      row += run;
    }
    return block;
  }

  static void run_matrix(const LinearArgs& args, const OpShape& op, int32_t image_positions) {
    const GemmShape shape = Packing::shape_of(op);
    const Geometry geometry = geometry_of(op);
    const int32_t positions = image_positions * args.batch.images;
    for (int32_t first = 0; first < positions; first += geometry.positions) {
      const int32_t count = positions - first < geometry.positions ? positions - first : geometry.positions;
      run_int8(args, shape, fill_rows(args, geometry, shape, image_positions, first, count));
    }
  }

  // One row of the padded input.
  static void fill_row(const LinearArgs& args, const int8_t* image, int32_t y, int32_t length, Activation* row) {
    const Shape& in = args.in;
    const Activation padding = Isa::padding(args.input_zero);
    if (y < 0 || y >= in.height) {
      for (int32_t i = 0; i < length; ++i) row[i] = padding;
      return;
    }
    const int32_t left = args.window.pad_left * in.channels;
    const int32_t inside = length - left < in.width * in.channels ? length - left : in.width * in.channels;
    for (int32_t i = 0; i < left; ++i) row[i] = padding;
    widen(image + y * in.width * in.channels, inside, args.input_zero, row + left);
    for (int32_t i = left + inside; i < length; ++i) row[i] = padding;
  }

  static void run_image(const LinearArgs& args, const OpShape& op, int32_t index) {
    const GemmShape shape = Packing::shape_of(op);
    const Geometry geometry = geometry_of(op);
    const int8_t* image = args.input + static_cast<int64_t>(index) * args.batch.input_stride;
    const int32_t row = geometry.row_stride;
    const int32_t most = geometry.positions / args.out.width;
    const int32_t bands = (args.out.height + most - 1) / most;
    int32_t done = 0;
    for (int32_t band = 0; band < bands; ++band) {
      const int32_t rows = (args.out.height - done) / (bands - band);
      Block block = block_in(args, geometry, shape, row);
      block.positions = rows * args.out.width;
      auto* buffer = static_cast<Activation*>(args.scratch);
      const int32_t in_rows = (rows - 1) * args.window.stride_h + args.window.kernel_h;
      for (int32_t y = 0; y < in_rows; ++y) {
        fill_row(args, image, done * args.window.stride_h - args.window.pad_top + y, row, buffer + y * row);
      }
      for (int32_t y = 0; y < rows; ++y) {
        for (int32_t x = 0; x < args.out.width; ++x) {
          const int32_t position = y * args.out.width + x;
          block.in_offsets[position] = y * args.window.stride_h * row + x * args.window.stride_w * args.in.channels;
          block.out_offsets[position] =
              index * args.batch.output_stride + (done * args.out.width + position) * args.out.channels;
        }
      }
      run_int8(args, shape, block);
      done += rows;
    }
  }

  static void run_int8(const LinearArgs& args, const GemmShape& shape, const Block& block) {
    const auto range = Isa::range(args.output_zero, args.clamp_min, args.clamp_max);
    run_panels(args, shape, block, [&](int32_t channel) {
      return Int8Output<Isa>{range, args.output + channel, block.out_offsets};
    });
  }

  template <typename MakeOutput>
  static void run_panels(const LinearArgs& args, const GemmShape& shape, const Block& block, MakeOutput make_output) {
    const auto* weights = static_cast<const typename Isa::Weight*>(args.packed);
    const int32_t* compensations = Packing::compensations(shape, args.packed);
    for (int32_t channel = 0; channel < shape.channels; channel += Packing::width) {
      const int32_t left = shape.channels - channel;
      const int32_t channels = left < Packing::width ? left : Packing::width;
      const int32_t columns = (channels + Isa::lanes - 1) / Isa::lanes;
      const Panel<Isa> panel = {weights, compensations + channel, args.bias + channel, args.scales + channel, channels,
                                columns};
      run_panel<Isa>(block.activations, block.in_offsets, block.positions, panel, make_output(channel));
      weights += columns * Isa::lanes * Packing::channel_weights(shape);
    }
  }
};

}  // namespace pmt::host
