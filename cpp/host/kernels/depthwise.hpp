// depthwise_conv2d, one output channel for every input channel, 16 channels at a time.
//
// Neighbouring pixels are interleaved to entries, so that one instruction multiplies several taps of
// a channel. The rows of the current window are kept in that form in a ring of kernel_h rows.
//
// Where channels is no multiple of 16, the last block overlaps the one before it; below 16 channels
// pixels are copied through a buffer of 16.
//
// A Form says what an entry is:
//   taps                 pixels of an entry
//   most_outputs         positions of a tile: none of its sums is spilled
//   Sums, Layer          of one position; what a block needs for its outputs
//   block_bytes, pack_block, layer_of
//   fill_row<Whole>      one input row as entries: entry e starts with the padded row's pixel e * apart
//   start                what the sums of a row of outputs start with
//   multiply, store
#pragma once

#include "core/arithmetic.hpp"
#include "core/kernels.hpp"
#include "host/kernels/requantise_bounds.hpp"
#include "host/kernels/unrolled.hpp"

namespace pmt::host {

constexpr int32_t depthwise_block = 16;        // channels
constexpr int32_t depthwise_entry_bytes = 64;  // of one block

// The entries of an input row. Stride 2 meets every other one only: those are left out.
template <typename Form>
struct EntryRow {
  int32_t groups;       // entries that a kernel row reads for one output
  int32_t apart;        // pixels from an entry to the next
  int32_t output_step;  // entries from an output's first to the next output's
  int32_t group_step;   // entries from one that an output reads to the next
  int32_t count;

  EntryRow(const Window& w, int32_t out_width) {
    groups = groups_of(w);
    apart = w.stride_w == 2 ? 2 : 1;
    output_step = w.stride_w / apart;
    group_step = Form::taps / apart;
    count = (out_width - 1) * output_step + (groups - 1) * group_step + 1;
  }
  static int32_t groups_of(const Window& w) { return (w.kernel_w + Form::taps - 1) / Form::taps; }
  int32_t bytes() const { return count * depthwise_entry_bytes; }
};

namespace {

// The weight of a tap as it is multiplied: perturbed where there are signs, 0 outside of the window.
inline int32_t depthwise_weight(const PackArgs& args, int32_t ky, int32_t kx, int32_t channel) {
  const int32_t channels = args.shape.out.channels;
  if (kx >= args.shape.window.kernel_w || channel >= channels) return 0;
  const int32_t at = (ky * args.shape.window.kernel_w + kx) * channels + channel;
  const int32_t weight = args.weights[at];
  return args.signs == nullptr ? weight : clamp(weight + args.mu * args.signs[at], -127, 127);
}

}  // namespace

// Kernel rows inside the image, and where the ring has them.
struct DepthwiseRows {
  const uint8_t* ring;
  int32_t row_bytes;
  int32_t first_slot;
  int32_t begin, end;
};

// An input row, and its slot in the ring: row % slots, without a division for every row.
struct RingPlace {
  int32_t row, slot, slots;

  void advance_to(int32_t later) {
    for (; row < later; ++row) slot = slot + 1 == slots ? 0 : slot + 1;
  }
};

template <typename Form>
class Depthwise {
 public:
  static bool fits(const OpShape& shape) { return shape.in.channels == shape.out.channels; }

  static int64_t packed_bytes(const OpShape& shape) {
    return static_cast<int64_t>(blocks(shape.out.channels)) * Form::block_bytes(shape.window);
  }

  static int32_t scratch_bytes(const OpShape& shape) {
    return shape.window.kernel_h * EntryRow<Form>(shape.window, shape.out.width).bytes();
  }

  static void pack(const PackArgs& args) {
    const int32_t channels = args.shape.out.channels;
    for (int32_t b = 0; b < blocks(channels); ++b) {
      Form::pack_block(args, block_start(b, channels),
                       static_cast<uint8_t*>(args.packed) + b * Form::block_bytes(args.shape.window));
    }
  }

  static void run(const LinearArgs& args) {
    const int32_t channels = args.out.channels;
    for (int32_t i = 0; i < args.batch.images; ++i) {
      const int8_t* in = args.input + static_cast<int64_t>(i) * args.batch.input_stride;
      int8_t* out = args.output + static_cast<int64_t>(i) * args.batch.output_stride;
      for (int32_t b = 0; b < blocks(channels); ++b) {
        const int32_t first = block_start(b, channels);
        const Layer layer =
            Form::layer_of(args, static_cast<const uint8_t*>(args.packed) + b * Form::block_bytes(args.window), first);
        const int32_t taps = args.window.kernel_h * args.window.kernel_w;
        if (channels < depthwise_block) {
          run_block<false, false>(args, layer, in, out);
        } else if (is_modest(taps, args.bias + first, args.scales + first, depthwise_block)) {
          run_block<true, true>(args, layer, in + first, out + first);
        } else {
          run_block<true, false>(args, layer, in + first, out + first);
        }
      }
    }
  }

 private:
  using Layer = typename Form::Layer;
  using Sums = typename Form::Sums;

  static int32_t blocks(int32_t channels) { return (channels + depthwise_block - 1) / depthwise_block; }
  static int32_t block_start(int32_t index, int32_t channels) {
    const int32_t start = index * depthwise_block;
    return channels >= depthwise_block && start + depthwise_block > channels ? channels - depthwise_block : start;
  }

  // Whole: 16 channels are there to be read and written.
  template <bool Whole, bool Modest>
  static void run_block(const LinearArgs& args, const Layer& layer, const int8_t* in, int8_t* out) {
    const Window& w = args.window;
    auto* ring = static_cast<uint8_t*>(args.scratch);
    const EntryRow<Form> row(w, args.out.width);
    const int32_t row_values = args.in.width * args.in.channels;
    RingPlace filled = {0, 0, w.kernel_h}, first = filled;  // the row to fill next, the window's first one
    for (int32_t y = 0; y < args.out.height; ++y) {
      const int32_t top = y * w.stride_h - w.pad_top;
      const int32_t begin = top < 0 ? -top : 0;
      const int32_t bottom = top + w.kernel_h < args.in.height ? top + w.kernel_h : args.in.height;
      first.advance_to(top + begin);
      filled.advance_to(top + begin);
      for (; filled.row < bottom; filled.advance_to(filled.row + 1)) {
        Form::template fill_row<Whole>(args, row, in + filled.row * row_values, ring + filled.slot * row.bytes());
      }
      const DepthwiseRows rows = {ring, row.bytes(), first.slot, begin, bottom - top};
      run_row<Whole, Modest>(args, layer, rows, out + y * args.out.width * args.out.channels);
    }
  }

  template <bool Whole, bool Modest>
  static void run_row(const LinearArgs& args, const Layer& layer, const DepthwiseRows& rows, int8_t* out) {
    const int32_t width = args.out.width;
    // A tile's outputs start at neighbouring entries.
    if (args.window.stride_w > 2) {
      run_tiles<Whole, Modest, 1>(1, args, layer, rows, 0, width, out);
      return;
    }
    const int32_t tiles = (width + Form::most_outputs - 1) / Form::most_outputs;
    const int32_t count = width / tiles, higher = width % tiles;
    const int32_t lower = tiles - higher;
    run_tiles<Whole, Modest, Form::most_outputs>(count, args, layer, rows, 0, lower, out);
    if (higher > 0) {
      run_tiles<Whole, Modest, Form::most_outputs>(count + 1, args, layer, rows, lower * count, higher, out);
    }
  }

  template <bool Whole, bool Modest, int32_t Count>
  static void run_tiles(int32_t count, const LinearArgs& args, const Layer& layer, const DepthwiseRows& rows, int32_t x,
                        int32_t tiles, int8_t* out) {
    if (count == Count) {
      switch (EntryRow<Form>::groups_of(args.window)) {
        case 1: whole_tiles<Whole, Modest, Count, 1>(args, layer, rows, x, tiles, out); break;
        case 2: whole_tiles<Whole, Modest, Count, 2>(args, layer, rows, x, tiles, out); break;
        case 3: whole_tiles<Whole, Modest, Count, 3>(args, layer, rows, x, tiles, out); break;
        case 4: whole_tiles<Whole, Modest, Count, 4>(args, layer, rows, x, tiles, out); break;
        default: whole_tiles<Whole, Modest, Count, 0>(args, layer, rows, x, tiles, out); break;
      }
    } else if constexpr (Count > 1) {
      run_tiles<Whole, Modest, Count - 1>(count, args, layer, rows, x, tiles, out);
    }
  }

  // `tiles` tiles of Count outputs from position x. Entries that a kernel row reads; 0: any number.
  // Copies, because the outputs could else be what the references refer to.
  template <bool Whole, bool Modest, int32_t Count, int32_t Groups>
  [[gnu::noinline, gnu::flatten]] static void whole_tiles(const LinearArgs& args, const Layer& outside,
                                                          const DepthwiseRows& outside_rows, int32_t x, int32_t tiles,
                                                          int8_t* out) {
    const Layer layer = outside;
    const DepthwiseRows rows = outside_rows;
    const EntryRow<Form> row(args.window, args.out.width);
    const int32_t groups = Groups > 0 ? Groups : row.groups;
    const int64_t channels = args.out.channels, group_bytes = row.group_step * depthwise_entry_bytes;
    const int64_t tile_bytes = Count * row.output_step * depthwise_entry_bytes;
    const uint8_t* const end = rows.ring + args.window.kernel_h * rows.row_bytes;
    out += x * channels;
    int64_t first = static_cast<int64_t>(x) * row.output_step * depthwise_entry_bytes;
    const Sums start = Form::template start<Modest>(layer, rows.begin, rows.end);
    const auto* const first_weights = Form::row_weights(layer, rows.begin * groups);
    for (int32_t tile = 0; tile < tiles; ++tile) {
      Sums sums[Count];
      unrolled<Count>([&](auto i) __attribute__((always_inline)) { sums[i] = start; });
      const uint8_t* slot = rows.ring + rows.first_slot * rows.row_bytes;
      const auto* weights = first_weights;
      for (int32_t left = rows.end - rows.begin; left > 0; --left) {
        const uint8_t* entry = slot + first;
#pragma GCC unroll 4
        for (int32_t group = 0; group < groups; ++group) {
          const auto taps = Form::load_weights(weights);
          unrolled<Count>([&](auto i) __attribute__((always_inline)) {
            Form::multiply(sums[i], entry + i * depthwise_entry_bytes, taps);
          });
          weights += Form::group_weights;
          entry += group_bytes;
        }
        slot += rows.row_bytes;
        if (slot == end) slot = rows.ring;
      }
      Form::template store<Whole, Modest, Count>(layer, sums, channels, out);
      first += tile_bytes;
      out += Count * channels;
    }
  }
};

}  // namespace pmt::host
