// depthwise_conv2d for AVX2, one output channel for every input channel, 16 channels at a time.
//
// Two neighbouring pixels are widened to int16 and interleaved, so that one vpmaddwd multiplies two
// taps of 8 channels. The rows of the current window are kept in that form in a ring of kernel_h
// rows. Interleaving within 128-bit lanes gives sums of the channels {0-3, 8-11} and {4-7, 12-15};
// the saturating packs of the requantisation put them back in order.
//
// Where channels is no multiple of 16, the last block overlaps the one before it; below 16 channels
// pixels are copied through a buffer of 16.
#pragma once

#include "host/kernels/isa_avx2.hpp"
#include "host/kernels/requantise_bounds.hpp"
#include "host/kernels/unrolled.hpp"

namespace pmt::host {
namespace {

class DepthwiseAvx2 {
 public:
  static constexpr int32_t block = 16;  // channels

  static bool fits(const OpShape& shape) { return shape.in.channels == shape.out.channels; }

  static int64_t packed_bytes(const OpShape& shape) {
    return static_cast<int64_t>(blocks(shape.out.channels)) * block_weights(shape.window) *
           static_cast<int64_t>(sizeof(int16_t));
  }

  static int32_t scratch_bytes(const OpShape& shape) {
    return shape.window.kernel_h * entries(shape.window, shape.out.width) * entry_bytes;
  }

  // [block][ky][pair of taps][low, high channels][channel][tap of the pair]
  static void pack(const PackArgs& args) {
    const Window& w = args.shape.window;
    const int32_t channels = args.shape.out.channels;
    auto* to = static_cast<int16_t*>(args.packed);
    for (int32_t b = 0; b < blocks(channels); ++b) {
      const int32_t first = block_start(b, channels);
      for (int32_t ky = 0; ky < w.kernel_h; ++ky) {
        for (int32_t kx = 0; kx < 2 * pairs(w); kx += 2) {
          for (int32_t lane = 0; lane < block; ++lane) {
            const int32_t channel = first + channel_of_lane(lane);
            *to++ = weight_at(args, ky, kx, channel);
            *to++ = weight_at(args, ky, kx + 1, channel);
          }
        }
      }
    }
  }

  static void run(const LinearArgs& args) {
    const int32_t channels = args.out.channels;
    const auto* weights = static_cast<const int16_t*>(args.packed);
    for (int32_t i = 0; i < args.batch.images; ++i) {
      const int8_t* in = args.input + static_cast<int64_t>(i) * args.batch.input_stride;
      int8_t* out = args.output + static_cast<int64_t>(i) * args.batch.output_stride;
      for (int32_t b = 0; b < blocks(channels); ++b) {
        const int32_t first = block_start(b, channels);
        const Layer layer = layer_of(args, weights + b * block_weights(args.window), first);
        const int32_t taps = args.window.kernel_h * args.window.kernel_w;
        const int32_t there = channels < block ? channels : block;
        if (channels < block) {
          run_block<false, false>(args, layer, in + first, out + first);
        } else if (is_modest(taps, args.bias + first, args.scales + first, there)) {
          run_block<true, true>(args, layer, in + first, out + first);
        } else {
          run_block<true, false>(args, layer, in + first, out + first);
        }
      }
    }
  }

 private:
  // One asm, because GCC 12 else keeps the products of a tile beside its sums and spills them.
  static __m256i dot(__m256i sum, const __m256i* activations, __m256i weights) {
    __m256i product;
    asm("vpmaddwd %2, %3, %1\n\tvpaddd %1, %0, %0" : "+x"(sum), "=&x"(product) : "m"(*activations), "x"(weights));
    return sum;
  }

  // Channels {0-3, 8-11} and {4-7, 12-15} of two positions to 16 outputs each.
  static __m256i narrow(const __m256i (&rounded)[4], const RangeAvx2& range) {
    __m256i positions[2];
    for (int32_t i = 0; i < 2; ++i) {
      positions[i] = _mm256_adds_epi16(_mm256_packs_epi32(rounded[2 * i], rounded[2 * i + 1]), range.zero_point);
    }
    const __m256i packed = _mm256_packs_epi16(positions[0], positions[1]);
    const __m256i bytes = _mm256_min_epi8(_mm256_max_epi8(packed, range.lower), range.highest);
    return _mm256_permute4x64_epi64(bytes, 0xD8);
  }

  static void store16(__m128i bytes, int8_t* to) { _mm_storeu_si128(reinterpret_cast<__m128i*>(to), bytes); }

  static constexpr int32_t entry_bytes = 64;  // two pixels of 16 channels, interleaved
  static constexpr int32_t outputs = 4;       // positions of a tile: 8 vectors of sums, none spilled

  // What a block needs for its outputs, in the order of its lanes.
  struct Layer {
    const int16_t* weights;
    __m256i bias[2];
    __m256 scales[2];
    RangeAvx2 range;
  };

  static int32_t blocks(int32_t channels) { return (channels + block - 1) / block; }
  static int32_t block_start(int32_t index, int32_t channels) {
    const int32_t start = index * block;
    return channels >= block && start + block > channels ? channels - block : start;
  }
  static int32_t pairs(const Window& w) { return (w.kernel_w + 1) / 2; }
  static int32_t block_weights(const Window& w) { return w.kernel_h * pairs(w) * 2 * block; }
  static int32_t channel_of_lane(int32_t lane) {
    const int32_t high = lane / 8, within = lane % 8;
    return within / 4 * 8 + high * 4 + within % 4;
  }
  static int32_t entries(const Window& w, int32_t out_width) { return (out_width - 1) * w.stride_w + 2 * pairs(w); }

  static int16_t weight_at(const PackArgs& args, int32_t ky, int32_t kx, int32_t channel) {
    const int32_t channels = args.shape.out.channels;
    if (kx >= args.shape.window.kernel_w || channel >= channels) return 0;
    const int32_t at = (ky * args.shape.window.kernel_w + kx) * channels + channel;
    int32_t weight = args.weights[at];
    if (args.signs == nullptr) return static_cast<int16_t>(weight);
    weight += args.mu * args.signs[at];
    return static_cast<int16_t>(weight > 127 ? 127 : (weight < -127 ? -127 : weight));
  }

  // Biases and scales are brought into the lanes' order: channels {0-3, 8-11} and {4-7, 12-15}.
  static Layer layer_of(const LinearArgs& args, const int16_t* weights, int32_t first) {
    Layer layer;
    layer.weights = weights;
    layer.range = Avx2::range(args.output_zero, args.clamp_min, args.clamp_max);
    const __m256i bias[2] = {Avx2::load(args.bias + first), Avx2::load(args.bias + first + 8)};
    layer.bias[0] = _mm256_permute2x128_si256(bias[0], bias[1], 0x20);
    layer.bias[1] = _mm256_permute2x128_si256(bias[0], bias[1], 0x31);
    const __m256 scales[2] = {Avx2::load_floats(args.scales + first), Avx2::load_floats(args.scales + first + 8)};
    layer.scales[0] = _mm256_permute2f128_ps(scales[0], scales[1], 0x20);
    layer.scales[1] = _mm256_permute2f128_ps(scales[0], scales[1], 0x31);
    return layer;
  }

  // Whole: 16 channels are there to be read and written.
  template <bool Whole>
  static __m256i pixel(const int8_t* values, int32_t channels, __m256i zero_point) {
    __m128i bytes;
    if constexpr (Whole) {
      bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(values));
    } else {
      int8_t some[16] = {};
      __builtin_memcpy(some, values, static_cast<size_t>(channels));
      bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(some));
    }
    return _mm256_sub_epi16(_mm256_cvtepi8_epi16(bytes), zero_point);
  }

  static void store_entry(__m256i left, __m256i right, uint8_t* to) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), _mm256_unpacklo_epi16(left, right));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to + 32), _mm256_unpackhi_epi16(left, right));
  }

  // One input row in the interleaved form. Entry p holds the padded row's pixels p and p + 1.
  template <bool Whole>
  static void fill_row(const LinearArgs& args, const int8_t* row, uint8_t* to) {
    const __m256i zero_point = _mm256_set1_epi16(static_cast<int16_t>(args.input_zero));
    const __m256i padding = _mm256_setzero_si256();
    const int32_t channels = args.in.channels, count = entries(args.window, args.out.width);
    const int32_t left = args.window.pad_left, right = left + args.in.width;
    const int32_t step = args.window.stride_w == 2 ? 2 : 1;  // at stride 2 outputs only meet even entries
    const auto at = [&](int32_t p) __attribute__((always_inline)) {
      return p >= left && p < right ? pixel<Whole>(row + (p - left) * channels, channels, zero_point) : padding;
    };
    int32_t p = 0;
    for (; p < left && p < count; p += step) store_entry(at(p), at(p + 1), to + p * entry_bytes);
    const int8_t* values = row + (p - left) * channels;
    if (step == 1 && p < count && p + 1 < right) {
      __m256i previous = pixel<Whole>(values, channels, zero_point);
      for (; p < count && p + 1 < right; ++p) {
        values += channels;
        const __m256i next = pixel<Whole>(values, channels, zero_point);
        store_entry(previous, next, to + p * entry_bytes);
        previous = next;
      }
    }
    for (; p < count && p + 1 < right; p += step) {
      store_entry(pixel<Whole>(values, channels, zero_point), pixel<Whole>(values + channels, channels, zero_point),
                  to + p * entry_bytes);
      values += step * channels;
    }
    for (; p < count; p += step) store_entry(at(p), at(p + 1), to + p * entry_bytes);
  }

  struct Rows {
    const uint8_t* ring;
    int32_t row_bytes;
    int32_t first_slot;  // of the first kernel row inside the image
    int32_t begin, end;  // kernel rows inside the image
  };

  template <bool Whole, bool Modest>
  static void run_block(const LinearArgs& args, const Layer& layer, const int8_t* in, int8_t* out) {
    const Window& w = args.window;
    auto* ring = static_cast<uint8_t*>(args.scratch);
    const int32_t row_bytes = entries(w, args.out.width) * entry_bytes;
    const int32_t row_values = args.in.width * args.in.channels;
    int32_t filled = 0;  // input rows in the ring so far
    for (int32_t y = 0; y < args.out.height; ++y) {
      const int32_t top = y * w.stride_h - w.pad_top;
      const int32_t begin = top < 0 ? -top : 0;
      const int32_t bottom = top + w.kernel_h < args.in.height ? top + w.kernel_h : args.in.height;
      if (filled < top) filled = top;
      for (; filled < bottom; ++filled) {
        fill_row<Whole>(args, in + filled * row_values, ring + filled % w.kernel_h * row_bytes);
      }
      const Rows rows = {ring, row_bytes, (top + begin) % w.kernel_h, begin, bottom - top};
      run_row<Whole, Modest>(args, layer, rows, out + y * args.out.width * args.out.channels);
    }
  }

  template <bool Whole, bool Modest>
  static void run_row(const LinearArgs& args, const Layer& layer, const Rows& rows, int8_t* out) {
    const int32_t width = args.out.width;
    const int32_t tiles = (width + outputs - 1) / outputs;
    const int32_t count = width / tiles, higher = width % tiles;
    const int32_t lower = tiles - higher;
    run_tiles<Whole, Modest, outputs>(count, args, layer, rows, 0, lower, out);
    if (higher > 0) run_tiles<Whole, Modest, outputs>(count + 1, args, layer, rows, lower * count, higher, out);
  }

  template <bool Whole, bool Modest, int32_t Count>
  static void run_tiles(int32_t count, const LinearArgs& args, const Layer& layer, const Rows& rows, int32_t x,
                        int32_t tiles, int8_t* out) {
    if (count == Count) {
      switch (pairs(args.window)) {
        case 2: whole_tiles<Whole, Modest, Count, 2>(args, layer, rows, x, tiles, out); break;
        case 3: whole_tiles<Whole, Modest, Count, 3>(args, layer, rows, x, tiles, out); break;
        case 4: whole_tiles<Whole, Modest, Count, 4>(args, layer, rows, x, tiles, out); break;
        default: whole_tiles<Whole, Modest, Count, 0>(args, layer, rows, x, tiles, out); break;
      }
    } else if constexpr (Count > 1) {
      run_tiles<Whole, Modest, Count - 1>(count, args, layer, rows, x, tiles, out);
    }
  }

  // `tiles` tiles of Count outputs from position x. Pairs of taps in a kernel row; 0: any number.
  template <bool Whole, bool Modest, int32_t Count, int32_t Pairs>
  [[gnu::noinline, gnu::flatten]] static void whole_tiles(const LinearArgs& args, const Layer& layer, const Rows& rows,
                                                          int32_t x, int32_t tiles, int8_t* out) {
    const int32_t kernel_pairs = Pairs > 0 ? Pairs : pairs(args.window), kernel_h = args.window.kernel_h;
    const int64_t step = args.window.stride_w * entry_bytes;
    const int32_t channels = args.out.channels;
    out += x * channels;
    const uint8_t* first = rows.ring + x * step;
    for (int32_t tile = 0; tile < tiles; ++tile) {
      __m256i sums[Count][2];
      unrolled<Count>([&](auto i) __attribute__((always_inline)) {
        sums[i][0] = Modest ? layer.bias[0] : _mm256_setzero_si256();
        sums[i][1] = Modest ? layer.bias[1] : _mm256_setzero_si256();
      });
      int32_t slot = rows.first_slot;
      const int16_t* weights = layer.weights + rows.begin * kernel_pairs * 2 * block;
      for (int32_t ky = rows.begin; ky < rows.end; ++ky) {
        const uint8_t* entry = first + slot * rows.row_bytes;
#pragma GCC unroll 4
        for (int32_t pair = 0; pair < kernel_pairs; ++pair) {
          const __m256i low = Avx2::load(weights), high = Avx2::load(weights + block);
          unrolled<Count>([&](auto i) __attribute__((always_inline)) {
            const auto* values = reinterpret_cast<const __m256i*>(entry + i * step);
            sums[i][0] = dot(sums[i][0], values, low);
            sums[i][1] = dot(sums[i][1], values + 1, high);
          });
          weights += 2 * block;
          entry += 2 * entry_bytes;
        }
        slot = slot + 1 == kernel_h ? 0 : slot + 1;
      }
      store<Whole, Modest>(channels, layer, sums, out);
      first += Count * step;
      out += Count * channels;
    }
  }

  template <bool Whole, bool Modest, int32_t Count>
  static void store(int32_t channels, const Layer& layer, const __m256i (&sums)[Count][2], int8_t* out) {
    unrolled<(Count + 1) / 2>([&](auto pair) __attribute__((always_inline)) {
      constexpr int32_t i = 2 * pair, next = i + 1 < Count ? i + 1 : i;
      __m256i rounded[4];
      for (int32_t half = 0; half < 2; ++half) {
        rounded[half] = round<Modest>(layer, half, sums[i][half]);
        rounded[2 + half] = round<Modest>(layer, half, sums[next][half]);
      }
      const __m256i bytes = narrow(rounded, layer.range);
      store_pixel<Whole>(_mm256_castsi256_si128(bytes), channels, out + i * channels);
      if (next > i) store_pixel<Whole>(_mm256_extracti128_si256(bytes, 1), channels, out + next * channels);
    });
  }

  template <bool Modest>
  static __m256i round(const Layer& layer, int32_t half, __m256i sums) {
    if constexpr (Modest) return Avx2::round_modest(sums, layer.scales[half]);
    return Avx2::round(Avx2::real(sums, Avx2::to_float(layer.bias[half]), layer.scales[half]), layer.range);
  }

  template <bool Whole>
  static void store_pixel(__m128i bytes, int32_t channels, int8_t* to) {
    if constexpr (Whole) {
      store16(bytes, to);
    } else {
      int8_t some[16];
      store16(bytes, some);
      __builtin_memcpy(to, some, static_cast<size_t>(channels));
    }
  }
};

}  // namespace
}  // namespace pmt::host
