// Vectors of eight int32 lanes, and from int32 sums to int8 outputs, for every table with 256-bit
// vectors.
#pragma once

#include <cstdint>
#include <cstring>

namespace pmt::host {
namespace {

// Bounds and zero point that turn rounded sums into outputs: upper bound (zero point removed), zero point, lower bound.
struct RangeAvx2 {
  __m256 upper;
  __m256i zero_point;      // int16
  __m256i lower, highest;  // int8
};

struct RequantizeAvx2 {
  static constexpr int32_t lanes = 8;  // int32 values of a vector
  static constexpr bool stores_parts = false;
  using Int32 = __m256i;
  using Float = __m256;
  using Bytes = __m256i;
  using Range = RangeAvx2;

  static Int32 zero() { return _mm256_setzero_si256(); }
  static Int32 load(const void* from) { return _mm256_loadu_si256(static_cast<const __m256i*>(from)); }
  static void store(void* to, Int32 value) { _mm256_storeu_si256(static_cast<__m256i*>(to), value); }
  // All lanes hold the 32 bits at `from`.
  static Int32 broadcast(const void* from) {
    int32_t value;
    std::memcpy(&value, from, sizeof value);
    return _mm256_set1_epi32(value);
  }
  static Int32 add(Int32 a, Int32 b) { return _mm256_add_epi32(a, b); }
  static Int32 multiply(Int32 a, int32_t b) { return _mm256_mullo_epi32(a, _mm256_set1_epi32(b)); }

  static Float load_floats(const float* from) { return _mm256_loadu_ps(from); }
  static void store_floats(float* to, Float value) { _mm256_storeu_ps(to, value); }
  static Float to_float(Int32 value) { return _mm256_cvtepi32_ps(value); }
  // (sums + bias) * scale
  static Float real(Int32 sums, Float bias, Float scale) {
    return _mm256_mul_ps(_mm256_add_ps(to_float(sums), bias), scale);
  }

  static Range range(int32_t zero_point, int32_t low, int32_t high) {
    return {_mm256_set1_ps(static_cast<float>(high - zero_point)), _mm256_set1_epi16(static_cast<int16_t>(zero_point)),
            _mm256_set1_epi8(static_cast<int8_t>(low)), _mm256_set1_epi8(static_cast<int8_t>(high))};
  }
  // Half to even. The upper bound comes first because the conversion turns what int32 cannot hold
  // into its minimum; that is right below the range only.
  static Int32 round(Float value, const Range& range) { return _mm256_cvtps_epi32(_mm256_min_ps(value, range.upper)); }

  // Half to even, of products that are known to fit int32 (requantize_bounds.hpp).
  static Int32 round_modest(Int32 sums, Float scale) {
    return _mm256_cvtps_epi32(_mm256_mul_ps(to_float(sums), scale));
  }

  // Four rounded vectors become 32 outputs, in order.
  template <bool Clamps>
  static Bytes narrow(const Int32 (&rounded)[4], const Range& range) {
    const __m256i first = _mm256_adds_epi16(_mm256_packs_epi32(rounded[0], rounded[1]), range.zero_point);
    const __m256i second = _mm256_adds_epi16(_mm256_packs_epi32(rounded[2], rounded[3]), range.zero_point);
    const __m256i packed = _mm256_packs_epi16(first, second);
    const __m256i bytes = Clamps ? clamp(packed, range) : packed;
    // The packs work on each 128-bit half: dwords are vectors 0 1 2 3 (low halves), 0 1 2 3 (high halves).
    return _mm256_permutevar8x32_epi32(bytes, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
  }
  static Bytes clamp(Bytes outputs, const Range& range) {
    return _mm256_min_epi8(_mm256_max_epi8(outputs, range.lower), range.highest);
  }
  // The outputs of vectors `index` .. `index` + `count` - 1 of narrow()'s four; both are constants
  // after inlining.
  static void store_outputs(int8_t* to, Bytes outputs, int32_t index, int32_t count) {
    auto* place = reinterpret_cast<__m128i*>(to);
    if (count == 4) {
      store(to, outputs);
      return;
    }
    const __m128i half = index < 2 ? _mm256_castsi256_si128(outputs) : _mm256_extracti128_si256(outputs, 1);
    if (count == 2) {
      _mm_storeu_si128(place, half);
    } else {
      _mm_storel_epi64(place, index % 2 == 0 ? half : _mm_unpackhi_epi64(half, half));
    }
  }
};

}  // namespace
}  // namespace pmt::host
