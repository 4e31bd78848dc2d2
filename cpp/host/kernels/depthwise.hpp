// depthwise_conv2d, one output channel for every input channel, 16 channels at a time.
//
// Neighboring pixels are interleaved to entries, so that one instruction multiplies several taps of
// a channel. A band of output rows is computed at a time: its input rows are kept in that form in a ring.
//
// Where channels is not a multiple of 16, the last block overlaps the one before it; below 16 channels
// pixels are copied through a buffer of 16.
//
// A Form says what an entry is:
//   taps                 pixels of an entry
//   most_outputs         positions of a tile: none of its sums is spilled
//   Sums, Layer          of one position; what a block needs for its outputs
//   block_bytes, pack_block, layer_of
//   fill_row<Whole>      one input row as entries: entry e starts with the padded row's pixel e * apart
//   start                what the sums of a row of outputs start with
//   row_weights, load_weights, group_weights
//                        where a kernel row's are, those of an entry, and how many
//   multiply, store      an entry into sums; sums to outputs
#pragma once

#include "core/base/arithmetic.hpp"
#include "core/kernels/table.hpp"
#include "host/kernels/requantize_bounds.hpp"
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

// An input row, and its slot in a ring: row % slots, without a division for every row.
struct RingPlace {
  int32_t row, slot, slots;

  void advance_to(int32_t later) {
    for (; row < later; ++row) slot = slot + 1 == slots ? 0 : slot + 1;
  }
};

}  // namespace

// Output rows begin .. end - 1, whose input rows are in the ring.
struct DepthwiseBand {
  const uint8_t* ring;
  int32_t row_bytes, slots;
  int32_t begin, end;
};

template <typename Form>
class Depthwise {
 public:
  static bool fits(const OpShape& shape) { return shape.in.channels == shape.out.channels; }

  static int64_t packed_bytes(const OpShape& shape) {
    return static_cast<int64_t>(blocks(shape.out.channels)) * Form::block_bytes(shape.window);
  }

  static int32_t scratch_bytes(const OpShape& shape) {
    return ring_slots(shape.window, shape.out) * EntryRow<Form>(shape.window, shape.out.width).bytes();
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
        } else if (is_modest(args, taps, first, depthwise_block)) {
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

  // Input rows that are kept: those of several output rows, where they fit in the first-level cache.
  static int32_t ring_slots(const Window& w, const Shape& out) {
    constexpr int32_t wanted_bytes = 16384;
    const int32_t all = (out.height - 1) * w.stride_h + w.kernel_h;
    return clamp(wanted_bytes / EntryRow<Form>(w, out.width).bytes(), w.kernel_h, all);
  }

  // Whole: 16 channels are there to be read and written.
  template <bool Whole, bool Modest>
  static void run_block(const LinearArgs& args, const Layer& layer, const int8_t* in, int8_t* out) {
    const Window& w = args.window;
    auto* ring = static_cast<uint8_t*>(args.scratch);
    const EntryRow<Form> row(w, args.out.width);
    const int32_t row_values = args.in.width * args.in.channels;
    const int32_t slots = ring_slots(w, args.out), together = (slots - w.kernel_h) / w.stride_h + 1;
    RingPlace filled = {0, 0, slots};  // the row to fill next
    for (int32_t y = 0; y < args.out.height; y += together) {
      const int32_t end = y + together < args.out.height ? y + together : args.out.height;
      const int32_t bottom = (end - 1) * w.stride_h - w.pad_top + w.kernel_h;
      filled.advance_to(y * w.stride_h - w.pad_top);
      for (; filled.row < bottom && filled.row < args.in.height; filled.advance_to(filled.row + 1)) {
        Form::template fill_row<Whole>(args, row, in + filled.row * row_values, ring + filled.slot * row.bytes());
      }
      run_band<Whole, Modest>(args, layer, {ring, row.bytes(), slots, y, end}, out);
    }
  }

  template <bool Whole, bool Modest>
  static void run_band(const LinearArgs& args, const Layer& layer, const DepthwiseBand& band, int8_t* out) {
    const int32_t width = args.out.width;
    // A tile's outputs start at neighboring entries.
    if (args.window.stride_w > 2) {
      run_tiles<Whole, Modest, 1>(1, args, layer, band, 0, width, out);
      return;
    }
    const int32_t tiles = (width + Form::most_outputs - 1) / Form::most_outputs;
    const int32_t count = width / tiles, higher = width % tiles;
    const int32_t lower = tiles - higher;
    run_tiles<Whole, Modest, Form::most_outputs>(count, args, layer, band, 0, lower, out);
    if (higher > 0) {
      run_tiles<Whole, Modest, Form::most_outputs>(count + 1, args, layer, band, lower * count, higher, out);
    }
  }

  template <bool Whole, bool Modest, int32_t Count>
  static void run_tiles(int32_t count, const LinearArgs& args, const Layer& layer, const DepthwiseBand& band, int32_t x,
                        int32_t tiles, int8_t* out) {
    if (count == Count) {
      switch (EntryRow<Form>::groups_of(args.window)) {
        case 1: whole_tiles<Whole, Modest, Count, 1>(args, layer, band, x, tiles, out); break;
        case 2: whole_tiles<Whole, Modest, Count, 2>(args, layer, band, x, tiles, out); break;
        case 3: whole_tiles<Whole, Modest, Count, 3>(args, layer, band, x, tiles, out); break;
        case 4: whole_tiles<Whole, Modest, Count, 4>(args, layer, band, x, tiles, out); break;
        default: whole_tiles<Whole, Modest, Count, 0>(args, layer, band, x, tiles, out); break;
      }
    } else if constexpr (Count > 1) {
      run_tiles<Whole, Modest, Count - 1>(count, args, layer, band, x, tiles, out);
    }
  }

  // Runs `tiles` tiles of Count outputs from position x, in every row of a band. Entries that a kernel row
  // reads; 0: any number. Copies, because the outputs could else be what the references refer to.
  template <bool Whole, bool Modest, int32_t Count, int32_t Groups>
  PMT_FLATTEN static void whole_tiles(const LinearArgs& args, const Layer& outside, const DepthwiseBand& outside_band,
                                      int32_t x, int32_t tiles, int8_t* out) {
    const Layer layer = outside;
    const DepthwiseBand band = outside_band;
    const Window w = args.window;
    const EntryRow<Form> row(w, args.out.width);
    const int32_t groups = Groups > 0 ? Groups : row.groups, in_height = args.in.height;
    const int64_t channels = args.out.channels, group_bytes = row.group_step * depthwise_entry_bytes;
    const int64_t row_values = args.out.width * channels;
    const int64_t tile_bytes = Count * row.output_step * depthwise_entry_bytes;
    const uint8_t* const ring = band.ring + static_cast<int64_t>(x) * row.output_step * depthwise_entry_bytes;
    const int64_t ring_bytes = static_cast<int64_t>(band.slots) * band.row_bytes;
    RingPlace place = {0, 0, band.slots};
    out += band.begin * row_values + x * channels;
    for (int32_t y = band.begin; y < band.end; ++y, out += row_values) {
      const int32_t top = y * w.stride_h - w.pad_top;
      const int32_t first_row = top < 0 ? -top : 0;
      const int32_t end_row = in_height - top < w.kernel_h ? in_height - top : w.kernel_h;
      place.advance_to(top + first_row);
      const Sums start = Form::template start<Modest>(layer, first_row, end_row);
      const uint8_t* first = ring + static_cast<int64_t>(place.slot) * band.row_bytes;
      const uint8_t* end = ring + ring_bytes;
      int8_t* to = out;
      for (int32_t tile = 0; tile < tiles; ++tile) {
        Sums sums[Count];
        repeated<Count>([&](auto i) PMT_INLINE { sums[i] = start; });
        const uint8_t* slot = first;
        const auto* weights = Form::row_weights(layer, first_row * groups);
        for (int32_t left = end_row - first_row; left > 0; --left) {
          const uint8_t* entry = slot;
#pragma GCC unroll 4
          for (int32_t group = 0; group < groups; ++group) {
            const auto taps = Form::load_weights(weights);
            repeated<Count>([&](auto i)
                                PMT_INLINE { Form::multiply(sums[i], entry + i * depthwise_entry_bytes, taps); });
            weights += Form::group_weights;
            entry += group_bytes;
          }
          slot += band.row_bytes;
          if (slot == end) slot -= ring_bytes;
        }
        Form::template store<Whole, Modest, Count>(layer, sums, channels, to);
        first += tile_bytes;
        end += tile_bytes;
        to += Count * channels;
      }
    }
  }
};

}  // namespace pmt::host
