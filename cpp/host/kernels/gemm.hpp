// conv2d, fully_connected and logits as packed matrix products (gemm_shape.hpp).
#pragma once

#include "host/kernels/gemm_block.hpp"
#include "host/kernels/gemm_outputs.hpp"
#include "host/kernels/gemm_tile.hpp"
#include "host/kernels/requantize_bounds.hpp"

namespace pmt::host {

template <typename Isa>
class Gemm {
 public:
  static int32_t scratch_bytes(const OpShape& op) {
    const GemmShape shape = gemm_shape<Isa>(op);
    return row_bytes(shape) + GemmBlocks::band_activations(shape) * activation_bytes + overread;
  }

  static void conv2d(const LinearArgs& args) {
    const GemmShape shape = gemm_shape<Isa>({OpKind::conv2d, args.in, args.out, args.window});
    if (shape.row_positions > 1) {
      pairs(args, shape);
    } else {
      Gemm(args, shape, shape.is_plain() ? no_window : args.window)
          .run(requantization(args), args.output, args.batch.output_stride);
    }
  }

  static void fully_connected(const LinearArgs& args) {
    const GemmShape shape = dense_shape(args.in, args.out);
    Gemm(args, shape, no_window).run(requantization(args), args.output, args.batch.output_stride);
  }

  static void logits(const LinearArgs& args, float* logits) {
    const GemmShape shape = dense_shape(args.in, args.out);
    const ScaleSums<Isa> epilogue = {args.bias, args.scales, nullptr};
    Gemm(args, shape, no_window).run(epilogue, logits, args.out.channels);
  }

 private:
  using Activation = typename Isa::Activation;

  static constexpr Window no_window = {1, 1, 1, 1, 0, 0};
  static constexpr int32_t activation_bytes = sizeof(Activation);
  static constexpr int32_t overread = 64;  // the last group of a row may end beyond the band

  static void pairs(const LinearArgs& args, const GemmShape& shape) {
    int32_t bias[Isa::lanes] = {};
    float scales[Isa::lanes] = {};
    for (int32_t c = 0; c < shape.out.channels; ++c) {
      bias[c] = args.bias[c % args.out.channels];
      scales[c] = args.scales[c % args.out.channels];
    }
    LinearArgs both = args;
    both.bias = bias;
    both.scales = scales;
    Gemm(both, shape, no_window).run(requantization(both), args.output, args.batch.output_stride);
  }

  // Scratch: rows of the block, its band of padded input rows.
  static int32_t row_bytes(const GemmShape& shape) {
    return GemmBlocks::positions(shape) * static_cast<int32_t>(sizeof(GemmRow));
  }

  static RequantizeSums<Isa, false, Stores::parts> requantization(const LinearArgs& args) {
    return {Isa::range(args.output_zero, args.clamp_min, args.clamp_max), args.bias, args.scales, nullptr};
  }

  Gemm(const LinearArgs& args, const GemmShape& shape, const Window& window)
      : args_(args),
        shape_(shape),
        window_(window),
        layout_(GemmLayout::of<Isa>(shape)),
        blocks_(shape, window, Isa::tile_rows(layout_.panel(0).width)),
        rows_(static_cast<GemmRow*>(args.scratch)),
        band_(reinterpret_cast<Activation*>(reinterpret_cast<uint8_t*>(rows_) + row_bytes(shape))) {}

  template <typename Epilogue>
  void run(const Epilogue& epilogue, typename Epilogue::Output* output, int64_t output_stride) {
    find_rows(output_stride);
    blocks_.for_each(args_.batch.images, Block<Epilogue>{*this, epilogue, output, output_stride});
  }

  template <typename Epilogue>
  struct Block {
    const Gemm& gemm;
    const Epilogue& epilogue;
    typename Epilogue::Output* output;
    int64_t output_stride;

    void operator()(const GemmBlock& block) const {
      Epilogue here = epilogue;
      here.output = output + block.first_image * output_stride +
                    static_cast<int64_t>(block.first_row) * gemm.shape_.out.width * gemm.shape_.out.channels;
      gemm.fill_band(block);
      gemm.multiply(here, block.images * block.rows * gemm.shape_.out.width);
    }
  };

  // Rows a constant step apart, as far as they go.
  struct Runs {
    GemmRow step;    // from a row to the next
    GemmRow next;    // from a run to the next
    int32_t length;  // 0: there are none, rows_ lists the rows
  };

  void find_rows(int64_t output_stride) {
    const int32_t images = clamp(args_.batch.images, 1, blocks_.images()), height = blocks_.rows();
    const int32_t width = shape_.out.width, channels = shape_.out.channels, positions = height * width;
    const int64_t down = static_cast<int64_t>(window_.stride_h) * blocks_.pitch() * activation_bytes;
    const int64_t right = static_cast<int64_t>(window_.stride_w) * shape_.in.channels * activation_bytes;
    const GemmRow step = {width > 1 ? right : down, channels};
    const GemmRow next_image = {static_cast<int64_t>(blocks_.input_rows(height)) * blocks_.pitch() * activation_bytes,
                                output_stride};
    const bool even_image = height == 1 || down == width * step.taps;
    const bool even_images = next_image.taps == positions * step.taps && next_image.output == positions * step.output;
    if (even_image && (images == 1 || even_images)) {
      runs_ = {step, {0, 0}, images * positions};
    } else if (images == 1 && width >= Isa::shortest_run) {
      runs_ = {step, {down, static_cast<int64_t>(width) * channels}, width};
    } else {
      runs_ = {};
      list_rows(images, step, down, next_image);
    }
  }

  // The rows of the largest block; those of a smaller one are the first of them.
  void list_rows(int32_t images, const GemmRow& step, int64_t down, const GemmRow& next_image) const {
    GemmRow* row = rows_;
    for (int32_t i = 0; i < images; ++i) {
      GemmRow next = {i * next_image.taps, i * next_image.output};
      for (int32_t y = 0; y < blocks_.rows(); ++y) {
        next.taps = i * next_image.taps + y * down;
        for (int32_t x = 0; x < shape_.out.width; ++x) {
          *row++ = next;
          next.taps += step.taps;
          next.output += step.output;
        }
      }
    }
  }

  template <typename Epilogue>
  void multiply(const Epilogue& epilogue, int32_t rows) const {
    const GemmRows block = {reinterpret_cast<const uint8_t*>(band_), shape_.segments(), layout_.groups(),
                            static_cast<int64_t>(blocks_.pitch()) * activation_bytes};
    for (int32_t p = 0; p < layout_.panels(); ++p) {
      const GemmLayout::Panel panel = layout_.panel(p);
      multiply_panel(epilogue, rows, static_cast<const uint8_t*>(args_.packed) + panel.offset, block, panel);
    }
  }

  void multiply_panel(const RequantizeSums<Isa, false, Stores::parts>& epilogue, int32_t rows, const uint8_t* weights,
                      const GemmRows& block, const GemmLayout::Panel& panel) const {
    const int32_t channel = panel.first_channel;
    const bool modest = is_modest(args_, shape_.taps() / shape_.row_positions, channel, panel.channels);
    const bool whole = panel.channels == panel.width * Isa::lanes;
    const bool dense = whole && runs_.length > 0 && runs_.step.output == panel.channels;
    const auto multiply_as = [&](auto as) {
      multiply_panel(decltype(as){epilogue.range, epilogue.bias, epilogue.scales, epilogue.output}, rows, weights,
                     block, panel);
    };
    if (modest && dense) {
      multiply_as(RequantizeSums<Isa, true, Stores::dense>{});
    } else if (dense) {
      multiply_as(RequantizeSums<Isa, false, Stores::dense>{});
    } else if (modest && whole) {
      multiply_as(RequantizeSums<Isa, true, Stores::whole>{});
    } else if (modest) {
      multiply_as(RequantizeSums<Isa, true, Stores::parts>{});
    } else if (whole) {
      multiply_as(RequantizeSums<Isa, false, Stores::whole>{});
    } else {
      multiply_rows(epilogue, rows, weights, block, panel);
    }
  }
  template <typename Epilogue>
  void multiply_panel(const Epilogue& epilogue, int32_t rows, const uint8_t* weights, const GemmRows& block,
                      const GemmLayout::Panel& panel) const {
    multiply_rows(epilogue, rows, weights, block, panel);
  }

  template <typename Epilogue>
  void multiply_rows(const Epilogue& epilogue, int32_t rows, const uint8_t* weights, const GemmRows& block,
                     const GemmLayout::Panel& panel) const {
    if constexpr (!Epilogue::is_dense) {
      if (runs_.length == 0) {
        gemm_panel<Isa, Epilogue, ListedRows, Isa::widest>(ListedRows{rows_}, rows, weights, block, panel, epilogue);
        return;
      }
    }
    EvenRows run = {{0, 0}, runs_.step};
    for (int32_t row = 0; row < rows; row += runs_.length) {
      const int32_t count = rows - row < runs_.length ? rows - row : runs_.length;
      gemm_panel<Isa, Epilogue, EvenRows, Isa::widest>(run, count, weights, block, panel, epilogue);
      run.first = {run.first.taps + runs_.next.taps, run.first.output + runs_.next.output};
    }
  }

  void fill_band(const GemmBlock& block) const {
    const int32_t band = blocks_.input_rows(block.rows) * blocks_.pitch();
    for (int32_t i = 0; i < block.images; ++i) {
      const int64_t image = block.first_image + i;
      fill_band(args_.input + image * args_.batch.input_stride, block, band_ + i * band);
    }
  }

  // The padded input rows under a block's output rows.
  void fill_band(const int8_t* image, const GemmBlock& block, Activation* band) const {
    const int32_t pitch = blocks_.pitch(), row = shape_.in.width * shape_.in.channels;
    const int32_t first = block.first_row * window_.stride_h - window_.pad_top;
    const int32_t rows = blocks_.input_rows(block.rows);
    const int32_t begin = clamp(-first, 0, rows), end = clamp(shape_.in.height - first, 0, rows);
    fill_padding(band, begin * pitch);
    if (pitch == row && window_.pad_left == 0) {
      Isa::convert(image + (first + begin) * row, (end - begin) * row, args_.input_zero, band + begin * pitch);
    } else {
      for (int32_t y = begin; y < end; ++y) fill_row(image + (first + y) * row, band + y * pitch);
    }
    fill_padding(band + end * pitch, (rows - end) * pitch);
  }

  void fill_row(const int8_t* values, Activation* row) const {
    const int32_t pitch = blocks_.pitch();
    const int32_t begin = clamp(window_.pad_left * shape_.in.channels, 0, pitch);
    const int32_t end = clamp(begin + shape_.in.width * shape_.in.channels, begin, pitch);
    fill_padding(row, begin);
    Isa::convert(values, end - begin, args_.input_zero, row + begin);
    fill_padding(row + end, pitch - end);
  }

  void fill_padding(Activation* to, int32_t count) const {
    const Activation padding = Isa::stored(args_.input_zero, args_.input_zero);
    for (int32_t i = 0; i < count; ++i) to[i] = padding;
  }

  const LinearArgs& args_;
  const GemmShape shape_;
  const Window window_;
  const GemmLayout layout_;
  const GemmBlocks blocks_;
  GemmRow* rows_;
  Activation* band_;
  Runs runs_ = {};
};

}  // namespace pmt::host
