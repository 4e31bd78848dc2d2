// Entries of depthwise_quads.hpp, of pixels and of weights.
#pragma once

#include "host/kernels/depthwise_quads.hpp"
#include "host/kernels/isa_avx512_vnni.hpp"
#include "host/kernels/unrolled.hpp"

namespace pmt::host {
namespace {

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

}  // namespace
}  // namespace pmt::host
