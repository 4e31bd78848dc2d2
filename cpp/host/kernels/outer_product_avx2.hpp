// Outer products of an int32 gradient and int16 patches, 256-bit code of every x86 table.
// Include where the compiler's target is AVX2 or more, after the headers of the core.
//
// A gradient is split into high * 2^16 + low, both int16, so that vpmaddwd multiplies two positions
// at once. A patch value is an int8 less a zero point, at most 255 in size: sums of 64 products,
// each below 2^23, stay inside int32. The int64 sums are read and written once for 64 positions.
#pragma once

#include <immintrin.h>

#include "core/kernels/portable/portable.hpp"
#include "core/kernels/table.hpp"

namespace pmt::host {
namespace {

struct OuterProductAvx2 {
  static constexpr int32_t positions_at_once = 64;

  static void outer_product(const OuterProductArgs& args) {
    if (largest(args.gradient, args.positions * args.channels) >= first_unsplittable) {
      portable::outer_product(args);
      return;
    }
    for (int32_t p = 0; p < args.positions; p += positions_at_once) {
      const int32_t positions = least(args.positions - p, positions_at_once);
      const OuterProductArgs block = {args.gradient + p * args.channels,
                                      args.patches + p * args.taps,
                                      positions,
                                      args.channels,
                                      args.taps,
                                      args.sums};
      for (int32_t c = 0; c < args.channels; c += channel_tile) add_channels(block, c);
    }
  }

 private:
  static constexpr int32_t pairs_at_once = positions_at_once / 2;
  static constexpr int32_t channel_tile = 64;
  static constexpr int32_t tap_tile = 16;
  static constexpr int32_t first_unsplittable = 0x7FFF8000;  // from here on the high half would be 2^15

  // Pairs of int16, of positions 2 p and 2 p + 1, in each 32-bit element.
  struct GradientPairs {
    alignas(32) int32_t low[pairs_at_once][channel_tile];
    alignas(32) int32_t high[pairs_at_once][channel_tile];
  };

  // Taps 0..3 and 8..11 of a tile in the first vector, 4..7 and 12..15 in the second.
  struct PatchPairs {
    __m256i taps[pairs_at_once][2];
  };

  struct RowSums {
    __m256i low[2], high[2];  // ordered as PatchPairs
  };

  static int32_t least(int32_t a, int32_t b) { return a < b ? a : b; }

  static int32_t largest(const int32_t* values, int32_t count) {
    int32_t result = INT32_MIN;
    for (int32_t i = 0; i < count; ++i) result = values[i] > result ? values[i] : result;
    return result;
  }

  static void add_channels(const OuterProductArgs& args, int32_t first) {
    const int32_t channels = least(args.channels - first, channel_tile);
    const int32_t pairs = (args.positions + 1) / 2;
    GradientPairs gradient;
    pair_gradient(args, first, channels, gradient);
    for (int32_t k = 0; k < args.taps; k += tap_tile) {
      const int32_t taps = least(args.taps - k, tap_tile);
      PatchPairs patches;
      pair_patches(args, k, taps, patches);
      int64_t* sums = args.sums + static_cast<int64_t>(first) * args.taps + k;
      int32_t c = 0;
      for (; c + 2 <= channels; c += 2) add_tile<2>(gradient, c, patches, pairs, taps, args.taps, sums + c * args.taps);
      if (c < channels) add_tile<1>(gradient, c, patches, pairs, taps, args.taps, sums + c * args.taps);
    }
  }

  static void pair_gradient(const OuterProductArgs& args, int32_t first, int32_t channels, GradientPairs& pairs) {
    for (int32_t p = 0; p < args.positions; p += 2) {
      const int32_t* even = args.gradient + p * args.channels + first;
      const int32_t* odd = p + 1 < args.positions ? even + args.channels : nullptr;
      for (int32_t c = 0; c < channels; c += 8) {
        const int32_t count = least(channels - c, 8);
        const __m256i a = load_gradient(even + c, count);
        const __m256i b = odd != nullptr ? load_gradient(odd + c, count) : _mm256_setzero_si256();
        const __m256i half = _mm256_set1_epi32(0x8000);
        store(pairs.low[p / 2] + c, _mm256_blend_epi16(a, _mm256_slli_epi32(b, 16), 0xAA));
        store(pairs.high[p / 2] + c,
              _mm256_blend_epi16(_mm256_srli_epi32(_mm256_add_epi32(a, half), 16), _mm256_add_epi32(b, half), 0xAA));
      }
    }
  }

  static __m256i load_gradient(const int32_t* values, int32_t count) {
    if (count == 8) return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(values));
    alignas(32) int32_t some[8] = {};
    for (int32_t i = 0; i < count; ++i) some[i] = values[i];
    return _mm256_load_si256(reinterpret_cast<const __m256i*>(some));
  }

  static void store(int32_t* to, __m256i values) { _mm256_store_si256(reinterpret_cast<__m256i*>(to), values); }

  static void pair_patches(const OuterProductArgs& args, int32_t first, int32_t taps, PatchPairs& pairs) {
    for (int32_t p = 0; p < args.positions; p += 2) {
      const int16_t* even = args.patches + p * args.taps + first;
      const __m256i a = load_taps(even, taps);
      const __m256i b = p + 1 < args.positions ? load_taps(even + args.taps, taps) : _mm256_setzero_si256();
      pairs.taps[p / 2][0] = _mm256_unpacklo_epi16(a, b);
      pairs.taps[p / 2][1] = _mm256_unpackhi_epi16(a, b);
    }
  }

  static __m256i load_taps(const int16_t* values, int32_t taps) {
    if (taps == tap_tile) return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(values));
    alignas(32) int16_t some[tap_tile] = {};
    for (int32_t k = 0; k < taps; ++k) some[k] = values[k];
    return _mm256_load_si256(reinterpret_cast<const __m256i*>(some));
  }

  template <int rows>
  static void add_tile(const GradientPairs& gradient, int32_t channel, const PatchPairs& patches, int32_t pairs,
                       int32_t taps, int32_t stride, int64_t* sums) {
    if (taps == tap_tile) {
      add_rows<rows>(gradient, channel, patches, pairs, stride, sums);
      return;
    }
    int64_t some[rows * tap_tile] = {};
    add_rows<rows>(gradient, channel, patches, pairs, tap_tile, some);
    for (int r = 0; r < rows; ++r) {
      for (int32_t k = 0; k < taps; ++k) sums[r * stride + k] += some[r * tap_tile + k];
    }
  }

  template <int rows>
  static void add_rows(const GradientPairs& gradient, int32_t channel, const PatchPairs& patches, int32_t pairs,
                       int32_t stride, int64_t* sums) {
    RowSums row[rows] = {};
#pragma GCC unroll 2  // else the sums move from register to register
    for (int32_t p = 0; p < pairs; ++p) {
      for (int r = 0; r < rows; ++r) {
        const __m256i low = _mm256_set1_epi32(gradient.low[p][channel + r]);
        const __m256i high = _mm256_set1_epi32(gradient.high[p][channel + r]);
        for (int i = 0; i < 2; ++i) {
          row[r].low[i] = _mm256_add_epi32(row[r].low[i], _mm256_madd_epi16(low, patches.taps[p][i]));
          row[r].high[i] = _mm256_add_epi32(row[r].high[i], _mm256_madd_epi16(high, patches.taps[p][i]));
        }
      }
    }
    for (int r = 0; r < rows; ++r) add_sixteen(row[r], sums + r * stride);
  }

  static void add_sixteen(const RowSums& row, int64_t* sums) {
    for (int i = 0; i < 2; ++i) {
      add_four(_mm256_castsi256_si128(row.low[i]), _mm256_castsi256_si128(row.high[i]), sums + 4 * i);
      add_four(_mm256_extracti128_si256(row.low[i], 1), _mm256_extracti128_si256(row.high[i], 1), sums + 8 + 4 * i);
    }
  }

  static void add_four(__m128i low, __m128i high, int64_t* sums) {
    auto* four = reinterpret_cast<__m256i*>(sums);
    const __m256i shifted = _mm256_slli_epi64(_mm256_cvtepi32_epi64(high), 16);
    const __m256i sum = _mm256_add_epi64(_mm256_cvtepi32_epi64(low), shifted);
    _mm256_storeu_si256(four, _mm256_add_epi64(_mm256_loadu_si256(four), sum));
  }
};

}  // namespace
}  // namespace pmt::host
