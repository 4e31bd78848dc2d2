// How depthwise_conv2d for AVX-512 VNNI lays out its input and its weights: a quad is the bytes of four
// rows of one channel, side by side in an int32 lane, so that one vpdpbusd multiplies four taps of a
// window's column in 16 lanes.
//
// Channels are done in blocks of 64, 32 or 16. 64 bytes of a row are a pixel of a block; of a smaller one
// the same pixel of two or four rows, each from a band of its own of the image. They become four vectors,
// an entry: vector k has lanes 4k .. 4k + 3 of every 16 bytes, the order in which unpack instructions
// leave them and pack instructions take them back. The next column of a window is an entry further.
//
// The rows of the quads serve several output rows ("variants" of the weights: the same taps, lower).
#pragma once

#include "core/base/arithmetic.hpp"
#include "core/kernels/table.hpp"

namespace pmt::host {

struct DepthwiseQuads {
  static constexpr int32_t rows = 4;     // of a quad
  static constexpr int32_t vectors = 4;  // of an entry
  static constexpr int32_t vector_bytes = 64;
  static constexpr int32_t entry_bytes = vectors * vector_bytes;

  // Channels first .. first + size - 1; where channels are not a multiple of a block, it overlaps the one before.
  struct Block {
    int32_t first, size;
  };

  Window window;
  int32_t in_width, channels;
  bool all_rows;     // of the image are in one quad; blocks of 64 channels only
  int32_t quads;     // of a column of the rows below
  int32_t variants;  // output rows that they serve
  int32_t base;      // first row of the quads less the first window's
  int32_t phases;    // pixels that lie in the same column of some window are `stride_w` apart: a phase
  int32_t entries;   // of a phase

  DepthwiseQuads(const Window& w, const Shape& in, const Shape& out)
      : window(w), in_width(in.width), channels(out.channels) {
    all_rows = in.height <= rows && channels >= vector_bytes;
    // Two quads have rows for a single window of a stride; a third makes it three.
    quads = all_rows ? 1 : (w.kernel_h + rows - 1) / rows + (w.stride_h > 1 && w.kernel_h > rows ? 1 : 0);
    variants = all_rows ? out.height : (rows * quads - w.kernel_h) / w.stride_h + 1;
    base = all_rows ? w.pad_top : 0;
    phases = w.stride_w < w.kernel_w ? w.stride_w : w.kernel_w;
    entries = out.width - 1 + columns(0);
    if (last_of(0) > entries) entries = last_of(0);
  }

  Block block(int32_t done) const {
    const int32_t left = channels - done;
    const bool whole = channels >= 64 && (left > 32 || all_rows);
    const int32_t size = whole ? 64 : (left >= 32 || (left > 16 && channels >= 32) ? 32 : 16);
    return {done + size > channels && channels >= size ? channels - size : done, size};
  }
  static int32_t end_of(const Block& block) { return block.first + block.size; }
  int32_t blocks() const {
    int32_t count = 0;
    for (int32_t done = 0; done < channels; ++count) done = end_of(block(done));
    return count;
  }

  // Kernel row of a quad's row, which may be outside of the window.
  int32_t kernel_row(int32_t variant, int32_t quad, int32_t row) const {
    return base - variant * window.stride_h + rows * quad + row;
  }
  // Quads with taps of a variant: begin .. end - 1.
  int32_t begin(int32_t variant) const { return clamp((variant * window.stride_h - base) / rows, 0, quads); }
  int32_t end(int32_t variant) const {
    const int32_t last = variant * window.stride_h - base + window.kernel_h - 1;
    return last < 0 ? 0 : clamp(last / rows + 1, 0, quads);
  }

  // Columns of a window in a phase.
  int32_t columns(int32_t phase) const { return steps(window.kernel_w - phase); }

  // Entry j of a phase is pixel stride_w * j + phase - pad_left of the image: padding before the first
  // and from `last_of` on.
  int32_t first_of(int32_t phase) const { return steps(window.pad_left - phase); }
  int32_t last_of(int32_t phase) const {
    const int32_t last = steps(in_width + window.pad_left - phase);
    return last > first_of(phase) ? last : first_of(phase);
  }

  int32_t phase_bytes() const { return entries * entry_bytes; }
  int32_t quad_bytes() const { return phases * phase_bytes(); }

  // A block's weights: start values of a variant's sums, then its taps by quad, phase and column.
  int32_t taps_bytes() const { return window.kernel_w * entry_bytes; }  // of a quad
  int32_t variant_bytes() const { return entry_bytes + quads * taps_bytes(); }
  int64_t block_bytes() const { return static_cast<int64_t>(variants) * variant_bytes(); }

 private:
  // pixels / stride, rounded up; most strides are 1, and a division is slow.
  int32_t steps(int32_t pixels) const {
    if (pixels <= 0) return 0;
    return window.stride_w == 1 ? pixels : (pixels + window.stride_w - 1) / window.stride_w;
  }
};

}  // namespace pmt::host
