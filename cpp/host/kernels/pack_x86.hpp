// Sixteen weights of a channel, for every table of x86. Included after <immintrin.h>.
#pragma once

#include <cstdint>

namespace pmt::host {
namespace {

struct PackX86 {
  using Taps = __m128i;

  static Taps no_taps() { return _mm_setzero_si128(); }
  static Taps load_taps(const int8_t* from) { return _mm_loadu_si128(reinterpret_cast<const __m128i*>(from)); }

  // The first `count` taps, zeros after them.
  static Taps keep_taps(Taps taps, int32_t count) {
    const __m128i index = _mm_setr_epi8(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    return _mm_and_si128(taps, _mm_cmpgt_epi8(_mm_set1_epi8(static_cast<int8_t>(count)), index));
  }

  // clamp(weights + mu * signs, -127, 127); 0 <= mu <= 127.
  static Taps perturb_taps(Taps weights, Taps signs, int32_t mu) {
    const __m128i difference = _mm_sign_epi8(_mm_set1_epi8(static_cast<int8_t>(mu)), signs);
    return _mm_max_epi8(_mm_adds_epi8(weights, difference), _mm_set1_epi8(-127));
  }
};

}  // namespace
}  // namespace pmt::host
