// AVX-512 with VNNI: vpdpbusd on sixteen lanes of int32.
#pragma once

#include "host/kernels/x86.hpp"

namespace pmt::host {
namespace {

struct Avx512Vnni : VnniX86 {
  static constexpr const char* name = "avx512_vnni";
  static constexpr int32_t lanes = 16;
  using Int32 = __m512i;
  using Float = __m512;
  using Bytes = __m512i;

  // Register tiles: at most `widest` vectors of channels, this many positions.
  static constexpr int32_t widest = 4;
  static constexpr int32_t panel_width(int32_t) { return widest; }
  static constexpr int32_t tile_rows(int32_t width) { return width >= 3 ? 6 : (width == 2 ? 8 : 16); }
  // Positions that count as rows a constant step apart: fewer, and the rest after the last whole tile costs more.
  static constexpr int32_t shortest_run = 16;

  static void convert(const int8_t* values, int32_t count, int32_t zero_point, Activation* converted) {
    const __m512i flip = _mm512_set1_epi8(-128);
    int32_t i = 0;
    for (; i + 64 <= count; i += 64) store(converted + i, _mm512_xor_si512(load(values + i), flip));
    VnniX86::convert(values + i, count - i, zero_point, converted + i);
  }

  static Int32 zero() { return _mm512_setzero_si512(); }
  static Int32 load(const void* from) { return _mm512_loadu_si512(from); }
  static void store(void* to, Int32 value) { _mm512_storeu_si512(to, value); }
  // All lanes hold the 32 bits at `from`.
  static Int32 broadcast(const void* from) {
    int32_t value;
    std::memcpy(&value, from, sizeof value);
    return _mm512_set1_epi32(value);
  }
  static Int32 add(Int32 a, Int32 b) { return _mm512_add_epi32(a, b); }
  static Int32 multiply(Int32 a, int32_t b) { return _mm512_mullo_epi32(a, _mm512_set1_epi32(b)); }
  static Int32 dot(Int32 sums, Int32 activations, Int32 weights) {
#if defined(__clang__) || defined(PMT_SIMULATED_INSTRUCTIONS)
    return _mm512_dpbusd_epi32(sums, activations, weights);
#else  // GCC 12 copies the sums before and after its intrinsic.
    asm("vpdpbusd %2, %1, %0" : "+v"(sums) : "v"(activations), "v"(weights));
    return sums;
#endif
  }

  // A load that several products share: else GCC 12 loads anew for each.
  static Int32 in_register(Int32 value) {
#if !defined(__clang__) && !defined(PMT_SIMULATED_INSTRUCTIONS)
    asm("" : "+v"(value));
#endif
    return value;
  }

  static Float load_floats(const float* from) { return _mm512_loadu_ps(from); }
  static void store_floats(float* to, Float value) { _mm512_storeu_ps(to, value); }
  static Float to_float(Int32 value) { return _mm512_cvtepi32_ps(value); }
  // (sums + bias) * scale
  static Float real(Int32 sums, Float bias, Float scale) {
    return _mm512_mul_ps(_mm512_add_ps(to_float(sums), bias), scale);
  }

  // Upper bound with the zero point removed, zero point as int16, bounds as int8.
  struct Range {
    __m512 upper;
    __m512i zero_point, lower, highest;
  };
  static Range range(int32_t zero_point, int32_t low, int32_t high) {
    return {_mm512_set1_ps(static_cast<float>(high - zero_point)), _mm512_set1_epi16(static_cast<int16_t>(zero_point)),
            _mm512_set1_epi8(static_cast<int8_t>(low)), _mm512_set1_epi8(static_cast<int8_t>(high))};
  }
  // Half to even. The upper bound comes first because the conversion turns what int32 cannot hold
  // into its minimum; that is right below the range only.
  static Int32 round(Float value, const Range& range) { return _mm512_cvtps_epi32(_mm512_min_ps(value, range.upper)); }

  // Half to even, of products that are known to fit int32 (requantize_bounds.hpp).
  static Int32 round_modest(Int32 sums, Float scale) {
    return _mm512_cvtps_epi32(_mm512_mul_ps(to_float(sums), scale));
  }

  // In each 128-bit part the four lanes of `a`, then those of `b`, as int16.
  static Int32 to_int16(Int32 a, Int32 b, const Range& range) {
    return _mm512_adds_epi16(_mm512_packs_epi32(a, b), range.zero_point);
  }
  // In each 128-bit part the eight int16 of `a`, then those of `b`, as outputs.
  template <bool Clamps>
  static Bytes to_outputs(Int32 a, Int32 b, const Range& range) {
    const Bytes bytes = _mm512_packs_epi16(a, b);
    return Clamps ? _mm512_min_epi8(_mm512_max_epi8(bytes, range.lower), range.highest) : bytes;
  }
  // Four rounded vectors become 64 outputs, in order.
  template <bool Clamps>
  static Bytes narrow(const Int32 (&rounded)[4], const Range& range) {
    const Bytes bytes =
        to_outputs<Clamps>(to_int16(rounded[0], rounded[1], range), to_int16(rounded[2], rounded[3], range), range);
    // Dword 4 * part + vector becomes dword 4 * vector + part.
    const __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    return _mm512_permutexvar_epi32(order, bytes);
  }
  // The outputs of vectors `index` .. `index` + `count` - 1 of narrow()'s four; both are constants
  // after inlining.
  static void store_outputs(int8_t* to, Bytes outputs, int32_t index, int32_t count) {
    if (count == 4) {
      store(to, outputs);
    } else if (count == 2) {
      const __m256i half = index == 0 ? _mm512_castsi512_si256(outputs) : _mm512_extracti64x4_epi64(outputs, 1);
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), half);
    } else {
      _mm_storeu_si128(reinterpret_cast<__m128i*>(to), part(outputs, index));
    }
  }
  // At most the first `channels` of vector `index`, which may be none.
  static constexpr bool stores_parts = true;
  static void store_part(int8_t* to, Bytes outputs, int32_t index, int32_t channels) {
    const uint32_t lowest = channels >= lanes ? 0xFFFF : (1u << (channels < 0 ? 0 : channels)) - 1;
    _mm_mask_storeu_epi8(to, static_cast<__mmask16>(lowest), part(outputs, index));
  }

  // The outputs of one vector.
  static __m128i part(Bytes outputs, int32_t index) {
    switch (index) {
      case 0: return _mm512_castsi512_si128(outputs);
      case 1: return _mm512_extracti32x4_epi32(outputs, 1);
      case 2: return _mm512_extracti32x4_epi32(outputs, 2);
      default: return _mm512_extracti32x4_epi32(outputs, 3);
    }
  }
};

}  // namespace
}  // namespace pmt::host
