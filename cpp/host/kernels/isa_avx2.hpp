// AVX2: eight lanes of int32. A group is two taps: activations and weights are widened to int16, so
// that vpmaddwd is exact (vpmaddubsw would saturate).
#pragma once

#include <immintrin.h>

#include <cstdint>

namespace pmt::host {

struct Avx2 {
  static constexpr int32_t lanes = 8;  // int32 values of a vector
  static constexpr int32_t group = 2;  // taps that one dot() adds to a lane
  using Int32 = __m256i;
  using Float = __m256;

  static Int32 zero() { return _mm256_setzero_si256(); }
  static Int32 load(const void* from) { return _mm256_loadu_si256(static_cast<const __m256i*>(from)); }
  static void store(void* to, Int32 value) { _mm256_storeu_si256(static_cast<__m256i*>(to), value); }
  static Int32 dot(Int32 sums, Int32 activations, Int32 weights) {
    return _mm256_add_epi32(sums, _mm256_madd_epi16(activations, weights));
  }
};

}  // namespace pmt::host
