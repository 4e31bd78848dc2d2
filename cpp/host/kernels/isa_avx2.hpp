// AVX2: eight lanes of int32. A group is two taps: activations (less their zero point) and weights
// are int16, so that vpmaddwd is exact (vpmaddubsw would saturate).
#pragma once

#include "host/kernels/requantize_avx2.hpp"
#include "host/kernels/x86.hpp"

namespace pmt::host {
namespace {

struct Avx2 : RequantizeAvx2, PackX86 {
  static constexpr const char* name = "avx2";
  static constexpr int32_t group = 2;  // taps that one dot() adds to a lane
  // True where dot() works on activations with their zero point: the sums then start at
  // -(that of the stored form) * sum(weights).
  static constexpr bool compensates = false;
  using Activation = int16_t;
  using Weight = int16_t;

  // Register tiles: at most `widest` vectors of channels, this many positions.
  static constexpr int32_t widest = 3;
  // Vectors of a panel: two read its weights least often, but a single position waits for three at once.
  static constexpr int32_t panel_width(int32_t positions) { return positions == 1 ? 3 : 2; }
  static constexpr int32_t tile_rows(int32_t width) { return width == 1 ? 8 : (width == 2 ? 6 : 3); }
  // Positions that count as rows a constant step apart: fewer, and the rest after the last whole tile costs more.
  static constexpr int32_t shortest_run = 64;

  // One asm, because GCC 12 else keeps the products of a tile beside its sums and spills them.
  static Int32 dot(Int32 sums, Int32 activations, Int32 weights) {
    Int32 products;
    asm("vpmaddwd %3, %2, %1\n\tvpaddd %1, %0, %0" : "+x"(sums), "=&x"(products) : "x"(activations), "x"(weights));
    return sums;
  }

  // Products before sums: the processor then finds both their units free more often.
  static constexpr bool dots_in_pairs = true;
  static void dot_pair(Int32& first, Int32& second, Int32 activations, Int32 first_weights, Int32 second_weights) {
    Int32 products;
    asm("vpmaddwd %4, %3, %2\n\tvpmaddwd %5, %3, %3\n\tvpaddd %3, %1, %1\n\tvpaddd %2, %0, %0"
        : "+x"(first), "+x"(second), "=&x"(products), "+x"(activations)
        : "x"(first_weights), "x"(second_weights));
  }

  static Activation stored(int32_t value, int32_t zero_point) { return static_cast<Activation>(value - zero_point); }

  // converted[i] = stored(values[i], zero_point)
  static void convert(const int8_t* values, int32_t count, int32_t zero_point, Activation* converted) {
    const __m256i zero_points = _mm256_set1_epi16(static_cast<int16_t>(zero_point));
    int32_t i = 0;
    for (; i + 16 <= count; i += 16) convert16(values + i, zero_points, converted + i);
    if (i == count) return;
    if (count >= 16) {
      convert16(values + count - 16, zero_points, converted + count - 16);
    } else {
      for (; i < count; ++i) converted[i] = stored(values[i], zero_point);
    }
  }

  // Weights of `pack_channels` channels and 16 taps become 16 / group groups. A group's vector is
  // that of all channels of a panel; `stride` bytes lie between two groups.
  static constexpr int32_t pack_channels = 8;
  static void store_groups(const __m128i (&channels)[pack_channels], int32_t groups, int32_t stride, uint8_t* packed) {
    __m128i quads[8], pairs[8];
    for (int i = 0; i < 4; ++i) {  // channels 2i and 2i + 1: groups 0..3, groups 4..7
      pairs[2 * i] = _mm_unpacklo_epi16(channels[2 * i], channels[2 * i + 1]);
      pairs[2 * i + 1] = _mm_unpackhi_epi16(channels[2 * i], channels[2 * i + 1]);
    }
    for (int half = 0; half < 2; ++half) {  // of four channels: two groups each
      for (int i = 0; i < 2; ++i) {
        quads[4 * half + 2 * i] = _mm_unpacklo_epi32(pairs[4 * half + i], pairs[4 * half + 2 + i]);
        quads[4 * half + 2 * i + 1] = _mm_unpackhi_epi32(pairs[4 * half + i], pairs[4 * half + 2 + i]);
      }
    }
    for (int i = 0; i < 4; ++i) {
      if (2 * i < groups) store_widened(packed + 2 * i * stride, _mm_unpacklo_epi64(quads[i], quads[4 + i]));
      if (2 * i + 1 < groups) {
        store_widened(packed + (2 * i + 1) * stride, _mm_unpackhi_epi64(quads[i], quads[4 + i]));
      }
    }
  }

 private:
  static void convert16(const int8_t* values, __m256i zero_points, Activation* converted) {
    const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(values));
    store(converted, _mm256_sub_epi16(_mm256_cvtepi8_epi16(bytes), zero_points));
  }
  static void store_widened(uint8_t* to, __m128i bytes) { store(to, _mm256_cvtepi8_epi16(bytes)); }
};

}  // namespace
}  // namespace pmt::host
