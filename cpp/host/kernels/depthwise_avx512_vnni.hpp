// depthwise_conv2d for AVX-512 VNNI on the quads of depthwise_quads.hpp. No byte crosses the 128-bit
// parts of a vector: what unpack instructions do to the input, pack instructions undo.
#pragma once

#include "host/kernels/depthwise_quads.hpp"
#include "host/kernels/isa_avx512_vnni.hpp"
#include "host/kernels/requantize_bounds.hpp"
#include "host/kernels/unrolled.hpp"
#include "host/kernels/x86.hpp"

namespace pmt::host {
namespace {

// Entries of depthwise_quads.hpp, of pixels and of weights.
struct EntryAvx512Vnni {
  static constexpr int32_t parts = 4;  // of a vector, 16 bytes each

  // Four rows become the vectors of an entry. `flips` are XORed.
  static void store(const __m512i (&rows)[DepthwiseQuads::rows], __m512i flips, void* to) {
    const __m512i low_ab = _mm512_unpacklo_epi8(rows[0], rows[1]), high_ab = _mm512_unpackhi_epi8(rows[0], rows[1]);
    const __m512i low_cd = _mm512_unpacklo_epi8(rows[2], rows[3]), high_cd = _mm512_unpackhi_epi8(rows[2], rows[3]);
    const __m512i vectors[DepthwiseQuads::vectors] = {
        _mm512_unpacklo_epi16(low_ab, low_cd), _mm512_unpackhi_epi16(low_ab, low_cd),
        _mm512_unpacklo_epi16(high_ab, high_cd), _mm512_unpackhi_epi16(high_ab, high_cd)};
    unrolled<DepthwiseQuads::vectors>([&](auto k) PMT_INLINE {
      Avx512Vnni::store(static_cast<uint8_t*>(to) + k * DepthwiseQuads::vector_bytes,
                        _mm512_xor_si512(vectors[k], flips));
    });
  }

  static __m512i joined(__m128i a, __m128i b, __m128i c, __m128i d) {
    const __m512i first = _mm512_inserti32x4(_mm512_castsi128_si512(a), b, 1);
    return _mm512_inserti32x4(_mm512_inserti32x4(first, c, 2), d, 3);
  }
};

// Weights of depthwise_conv2d into the entries of depthwise_quads.hpp, perturbed on the way.
class DepthwisePackingAvx512Vnni {
 public:
  static void pack(const PackArgs& args) {
    const DepthwiseQuads quads(args.shape.window, args.shape.in, args.shape.out);
    auto* to = static_cast<uint8_t*>(args.packed);
    for (int32_t done = 0; done < quads.channels;) {
      const DepthwiseQuads::Block block = quads.block(done);
      for (int32_t variant = 0; variant < quads.variants; ++variant, to += quads.variant_bytes()) {
        DepthwisePackingAvx512Vnni(args, quads, block).pack_variant(variant, to);
      }
      done = DepthwiseQuads::end_of(block);
    }
  }

 private:
  using Quads = DepthwiseQuads;
  using Isa = Avx512Vnni;
  DepthwisePackingAvx512Vnni(const PackArgs& args, const Quads& quads, const Quads::Block& block)
      : args_(args), quads_(quads), block_(block) {}

  void pack_variant(int32_t variant, uint8_t* packed) const {
    uint8_t* to = packed + Quads::entry_bytes;
    __m512i sums[Quads::vectors] = {};
    for (int32_t quad = 0; quad < quads_.quads; ++quad) {
      for (int32_t phase = 0; phase < quads_.phases; ++phase) {
        for (int32_t kx = phase; kx < quads_.window.kernel_w; kx += quads_.window.stride_w, to += Quads::entry_bytes) {
          pack_entry(variant, quad, kx, to);
          for (int32_t k = 0; k < Quads::vectors; ++k) {
            sums[k] = Isa::dot(sums[k], _mm512_set1_epi8(1), Isa::load(to + k * Quads::vector_bytes));
          }
        }
      }
    }
    for (int32_t k = 0; k < Quads::vectors; ++k) {
      Isa::store(packed + k * Quads::vector_bytes, Isa::multiply(sums[k], -(args_.input_zero + 128)));
    }
  }

  void pack_entry(int32_t variant, int32_t quad, int32_t kx, uint8_t* to) const {
    __m512i rows[Quads::rows];
    for (int32_t row = 0; row < Quads::rows; ++row) rows[row] = kernel_row(quads_.kernel_row(variant, quad, row), kx);
    EntryAvx512Vnni::store(rows, _mm512_setzero_si512(), to);
  }

  // The block's weights at a place of the window, 0 outside of it.
  __m512i kernel_row(int32_t ky, int32_t kx) const {
    if (ky < 0 || ky >= quads_.window.kernel_h) return _mm512_setzero_si512();
    const int32_t first = (ky * quads_.window.kernel_w + kx) * quads_.channels + block_.first;
    const int32_t wrap = block_.size - 1;
    return EntryAvx512Vnni::joined(part(first), part(first + (16 & wrap)), part(first + (32 & wrap)),
                                   part(first + (48 & wrap)));
  }

  __m128i part(int32_t index) const {
    const __m128i weights = load(args_.weights + index);
    return args_.signs == nullptr ? weights : Isa::perturb_taps(weights, load(args_.signs + index), args_.mu);
  }
  __m128i load(const int8_t* values) const {
    return quads_.channels >= 16 ? PixelX86::load<true>(values, 16) : PixelX86::load<false>(values, quads_.channels);
  }

  const PackArgs& args_;
  const DepthwiseQuads& quads_;
  const Quads::Block block_;
};

class DepthwiseAvx512Vnni {
 public:
  static bool fits(const OpShape& shape) { return shape.in.channels == shape.out.channels; }

  static int64_t packed_bytes(const OpShape& shape) {
    const Quads quads = quads_of(shape);
    return quads.blocks() * quads.block_bytes();
  }

  static int32_t scratch_bytes(const OpShape& shape) {
    const Quads quads = quads_of(shape);
    return ring_bytes(quads) + shape.in.width * shape.in.channels;
  }

  static void pack(const PackArgs& args) { DepthwisePackingAvx512Vnni::pack(args); }

  static void run(const LinearArgs& args) {
    const Quads quads(args.window, args.in, args.out);
    const int32_t taps = args.window.kernel_h * args.window.kernel_w;
    const int64_t block_bytes = quads.block_bytes();
    prepare(args, quads);
    const auto* weights = static_cast<const uint8_t*>(args.packed);
    for (int32_t done = 0; done < quads.channels; weights += block_bytes) {
      const Quads::Block block = quads.block(done);
      const Layer layer = layer_of(args, quads, block, weights);
      const int32_t count = block.size < quads.channels ? block.size : quads.channels;
      if (is_modest(args, taps, block.first, count)) {
        run_block<true>(args, quads, layer);
      } else {
        run_block<false>(args, quads, layer);
      }
      done = Quads::end_of(block);
    }
  }

 private:
  using Quads = DepthwiseQuads;
  using Isa = Avx512Vnni;
  static constexpr int32_t parts = EntryAvx512Vnni::parts;

  // Columns of a window that are neighbors in a quad's phase, from the phase's place in the ring on.
  struct Run {
    int32_t offset, columns;
  };

  // The layer, as a block sees it.
  struct Layer {
    Quads::Block block;
    const uint8_t* weights;
    const Run* runs;        // by quad and phase
    const int8_t* padding;  // a row
    int32_t bands;          // of the image, side by side in a vector
    int32_t band_rows;      // output rows
    __m512i bias[Quads::vectors];
    __m512i scales[Quads::vectors];  // floats
    Isa::Range range;
  };

  static Quads quads_of(const OpShape& shape) { return {shape.window, shape.in, shape.out}; }

  // Memory of the quads and of their runs.
  static int32_t ring_bytes(const Quads& quads) {
    return quads.quads * (quads.quad_bytes() + quads.phases * static_cast<int32_t>(sizeof(Run)));
  }

  // Padding wherever no pixel will be, and a row of it.
  static void prepare(const LinearArgs& args, const Quads& quads) {
    auto* const ring = static_cast<uint8_t*>(args.scratch);
    const int32_t bytes = quads.quads * quads.quad_bytes();
    std::memset(ring, static_cast<uint8_t>(args.input_zero + 128), static_cast<size_t>(bytes));
    std::memset(ring + ring_bytes(quads), args.input_zero, static_cast<size_t>(args.in.width) * args.in.channels);
    auto* const runs = reinterpret_cast<Run*>(ring + bytes);
    for (int32_t quad = 0; quad < quads.quads; ++quad) {
      for (int32_t phase = 0; phase < quads.phases; ++phase) {
        const int32_t i = quad * quads.phases + phase;
        runs[i] = {i * quads.phase_bytes(), quads.columns(phase)};
      }
    }
  }

  static Layer layer_of(const LinearArgs& args, const Quads& quads, const Quads::Block& block, const uint8_t* weights) {
    const auto* const ring = static_cast<const uint8_t*>(args.scratch);
    const int32_t bands = Quads::vector_bytes / block.size;
    return {block,
            weights,
            reinterpret_cast<const Run*>(ring + quads.quads * quads.quad_bytes()),
            reinterpret_cast<const int8_t*>(ring + ring_bytes(quads)),
            bands,
            (args.out.height + bands - 1) / bands,
            {in_lanes<0>(args.bias, block), in_lanes<1>(args.bias, block), in_lanes<2>(args.bias, block),
             in_lanes<3>(args.bias, block)},
            {in_lanes<0>(args.scales, block), in_lanes<1>(args.scales, block), in_lanes<2>(args.scales, block),
             in_lanes<3>(args.scales, block)},
            Isa::range(args.output_zero, args.clamp_min, args.clamp_max)};
  }

  // The values of a block's channels in the lanes of a vector.
  template <int32_t K>
  static __m512i in_lanes(const void* values, const Quads::Block& block) {
    const auto* const from = static_cast<const int32_t*>(values) + block.first + 4 * K;
    const int32_t size = block.size;
    const auto part = [&](int32_t i) PMT_INLINE {
      return _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + (16 * i & (size - 1))));
    };
    return EntryAvx512Vnni::joined(part(0), part(1), part(2), part(3));
  }

  template <bool Modest>
  static void run_block(const LinearArgs& args, const Quads& quads, const Layer& layer) {
    auto* ring = static_cast<uint8_t*>(args.scratch);
    for (int32_t i = 0; i < args.batch.images; ++i) {
      const int8_t* in = args.input + static_cast<int64_t>(i) * args.batch.input_stride + layer.block.first;
      int8_t* out = args.output + static_cast<int64_t>(i) * args.batch.output_stride + layer.block.first;
      for (int32_t y = 0; y < layer.band_rows; y += quads.variants) {
        for (int32_t quad = 0; quad < quads.quads; ++quad) {
          fill_quad(args, quads, layer, in, y, quad, ring + quad * quads.quad_bytes());
        }
        run_rows<Modest>(args, quads, layer, y, out);
      }
    }
  }

  // The first pixel of a quad's rows in every band; a row outside of the image is one of padding.
  struct Rows {
    const int8_t* values[Quads::rows][parts];
  };

  // The quad that output rows from row y of every band on see.
  static void fill_quad(const LinearArgs& args, const Quads& quads, const Layer& layer, const int8_t* in, int32_t y,
                        int32_t quad, uint8_t* to) {
    const int32_t channels = args.in.channels, stride = quads.window.stride_h;
    const int32_t top = y * stride - quads.window.pad_top + quads.base + quad * Quads::rows;
    Rows rows;
    for (int32_t band = 0; band < layer.bands; ++band) {
      const int32_t first = top + band * layer.band_rows * stride;
      for (int32_t r = 0; r < Quads::rows; ++r) {
        const int32_t at = first + r;
        const bool inside = at >= 0 && at < args.in.height;
        rows.values[r][band] = inside ? in + static_cast<int64_t>(at) * args.in.width * channels : layer.padding;
      }
    }
    const int64_t step = static_cast<int64_t>(quads.window.stride_w) * channels;
    for (int32_t phase = 0; phase < quads.phases; ++phase, to += quads.phase_bytes()) {
      const int32_t first = quads.first_of(phase), count = quads.last_of(phase) - first;
      const int64_t x = quads.window.stride_w * first + phase - quads.window.pad_left;
      fill_pixels(rows, layer, x * channels, step, count, channels, to + first * Quads::entry_bytes);
    }
  }

  static void fill_pixels(const Rows& rows, const Layer& layer, int64_t offset, int64_t step, int32_t count,
                          int32_t channels, uint8_t* to) {
    if (layer.block.size == 64) {
      fill<64, true>(rows, offset, step, count, channels, to);
    } else if (layer.block.size == 32) {
      fill<32, true>(rows, offset, step, count, channels, to);
    } else if (channels >= 16) {
      fill<16, true>(rows, offset, step, count, channels, to);
    } else {
      fill<16, false>(rows, offset, step, count, channels, to);
    }
  }

  // Pixels from `offset` on, `step` values apart, as entries. Whole: the block's channels are there.
  template <int32_t Size, bool Whole>
  PMT_FLATTEN static void fill(const Rows& rows, int64_t offset, int64_t step, int32_t count, int32_t channels,
                               uint8_t* to) {
    constexpr int32_t together = 2;  // as the rows' places are not kept in registers
    for (; count >= together; count -= together, offset += together * step, to += together * Quads::entry_bytes) {
      fill_entries<Size, Whole, together>(rows, offset, step, channels, to);
    }
    if (count > 0) fill_entries<Size, Whole, 1>(rows, offset, step, channels, to);
  }

  template <int32_t Size, bool Whole, int32_t Count>
  static void fill_entries(const Rows& rows, int64_t offset, int64_t step, int32_t channels, uint8_t* to) {
    __m512i pixels[Count][Quads::rows] = {};
    unrolled<Quads::rows>([&](auto r) PMT_INLINE {
      unrolled<Quads::vector_bytes / Size>([&](auto part) PMT_INLINE {
        const int8_t* const at = rows.values[r][part] + offset;
        unrolled<Count>([&](auto t) PMT_INLINE {
          pixels[t][r] = inserted<Size, Whole, part>(pixels[t][r], at + t * step, channels);
        });
      });
    });
    const __m512i flips = _mm512_set1_epi8(-128);
    unrolled<Count>([&](auto t) PMT_INLINE { EntryAvx512Vnni::store(pixels[t], flips, to + t * Quads::entry_bytes); });
  }

  // With the channels of a pixel at their part of the vector.
  template <int32_t Size, bool Whole, int32_t Part>
  static __m512i inserted(__m512i vector, const int8_t* values, int32_t channels) {
    if constexpr (Size == 64) {
      return Isa::load(values);
    } else if constexpr (Size == 32) {
      const __m256i half = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(values));
      return Part == 0 ? _mm512_castsi256_si512(half) : _mm512_inserti64x4(vector, half, 1);
    } else {
      const __m128i quarter = PixelX86::load<Whole>(values, channels);
      return Part == 0 ? _mm512_castsi128_si512(quarter) : _mm512_inserti32x4(vector, quarter, Part);
    }
  }

  // Rows of outputs from a variant on, the first of every band.
  struct Tiles {
    const uint8_t *starts, *taps;
    int64_t variant_bytes;
    const Run *runs, *end;
    const uint8_t* ring;
    int8_t* out;
    int64_t channels, row_values, band_values;
    int32_t bands[2];  // with an output row, by variant
  };

  // How many bands have an output row `y`.
  static int32_t bands_with(const LinearArgs& args, const Layer& layer, int32_t y) {
    int32_t bands = layer.bands;
    while (bands > 1 && (bands - 1) * layer.band_rows + y >= args.out.height) --bands;
    return bands;
  }

  // Output rows from row y of every band on, which the same quads serve, two at a time.
  template <bool Modest>
  static void run_rows(const LinearArgs& args, const Quads& quads, const Layer& layer, int32_t y, int8_t* out) {
    const int32_t left = layer.band_rows - y, rows = left < quads.variants ? left : quads.variants;
    const int64_t row_values = static_cast<int64_t>(args.out.width) * args.out.channels;
    for (int32_t variant = 0; variant < rows; variant += 2) {
      const bool both = variant + 1 < rows;
      const int32_t begin = quads.begin(variant), end = quads.end(variant + both);
      const uint8_t* const packed = layer.weights + static_cast<int64_t>(variant) * quads.variant_bytes();
      const Tiles tiles = {packed,
                           packed + Quads::entry_bytes + begin * quads.taps_bytes(),
                           quads.variant_bytes(),
                           layer.runs + begin * quads.phases,
                           layer.runs + end * quads.phases,
                           static_cast<const uint8_t*>(args.scratch),
                           out + (y + variant) * row_values,
                           args.out.channels,
                           row_values,
                           layer.band_rows * row_values,
                           {bands_with(args, layer, y + variant), bands_with(args, layer, y + variant + 1)}};
      if (both) {
        run_tiles<Modest, 2, 2>(layer, tiles, args.out.width);
      } else {
        run_tiles<Modest, 1, 4>(layer, tiles, args.out.width);
      }
    }
  }

  template <bool Modest, int32_t Rows, int32_t Most>
  static void run_tiles(const Layer& layer, const Tiles& tiles, int32_t width) {
    const int32_t whole = width / Most * Most;
    if (whole > 0) tiles_of<Modest, Rows, Most>(layer, tiles, 0, whole);
    if (whole < width) tiles_of<Modest, Rows, 1>(layer, tiles, whole, width);
  }

  // Pixels x .. end - 1 of Rows output rows, Count at a time. Copies, because the outputs could else be
  // what the references refer to.
  template <bool Modest, int32_t Rows, int32_t Count>
  PMT_FLATTEN static void tiles_of(const Layer& outside_layer, const Tiles& outside, int32_t x, int32_t end) {
    const Layer layer = outside_layer;
    const Tiles tiles = outside;
    for (; x < end; x += Count) {
      __m512i sums[Rows][Count][Quads::vectors];
      repeated<Rows>([&](auto r) PMT_INLINE {
        repeated<Quads::vectors>([&](auto k) PMT_INLINE {
          __m512i start = Isa::load(tiles.starts + r * tiles.variant_bytes + k * Quads::vector_bytes);
          if constexpr (Modest) start = Isa::add(start, layer.bias[k]);
          repeated<Count>([&](auto t) PMT_INLINE { sums[r][t][k] = start; });
        });
      });
      const uint8_t* taps = tiles.taps;
      const uint8_t* const entry = tiles.ring + static_cast<int64_t>(x) * Quads::entry_bytes;
      for (const Run* run = tiles.runs; run != tiles.end; ++run) {
        const uint8_t* column = entry + run->offset;
        for (int32_t left = run->columns; left > 0; --left) {
          repeated<Quads::vectors>([&](auto k) PMT_INLINE {
            __m512i bytes[Count];
            repeated<Count>([&](auto t) PMT_INLINE {
              bytes[t] = Isa::in_register(Isa::load(column + t * Quads::entry_bytes + k * Quads::vector_bytes));
            });
            repeated<Rows>([&](auto r) PMT_INLINE {
              const __m512i weights = Isa::load(taps + r * tiles.variant_bytes + k * Quads::vector_bytes);
              repeated<Count>([&](auto t) PMT_INLINE { sums[r][t][k] = Isa::dot(sums[r][t][k], bytes[t], weights); });
            });
          });
          column += Quads::entry_bytes;
          taps += Quads::entry_bytes;
        }
      }
      repeated<Rows>([&](auto r) PMT_INLINE {
        repeated<Count>([&](auto t) PMT_INLINE {
          store(layer, tiles, outputs<Modest>(layer, sums[r][t]), tiles.bands[r],
                tiles.out + r * tiles.row_values + (x + t) * tiles.channels);
        });
      });
    }
  }

  template <bool Modest>
  static __m512i outputs(const Layer& layer, const __m512i (&sums)[Quads::vectors]) {
    const auto round = [&](int32_t k) PMT_INLINE {
      const __m512 scale = _mm512_castsi512_ps(layer.scales[k]);
      if constexpr (Modest) return Isa::round_modest(sums[k], scale);
      return Isa::round(Isa::real(sums[k], Isa::to_float(layer.bias[k]), scale), layer.range);
    };
    const __m512i low = Isa::to_int16(round(0), round(1), layer.range);
    const __m512i high = Isa::to_int16(round(2), round(3), layer.range);
    return Isa::to_outputs<!Modest>(low, high, layer.range);
  }

  // A pixel of each of the first `bands` bands.
  static void store(const Layer& layer, const Tiles& tiles, __m512i bytes, int32_t bands, int8_t* to) {
    if (layer.block.size == 64) {
      Isa::store(to, bytes);
    } else if (layer.block.size == 32) {
      Isa::store_outputs(to, bytes, 0, 2);
      if (bands > 1) Isa::store_outputs(to + tiles.band_values, bytes, 2, 2);
    } else {
      unrolled<parts>([&](auto i) PMT_INLINE {
        if (bands > i) Isa::store_part(to + i * tiles.band_values, bytes, i, static_cast<int32_t>(tiles.channels));
      });
    }
  }
};

}  // namespace

}  // namespace pmt::host
