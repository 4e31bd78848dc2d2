// The packed form that the vpdpbusd instructions ask for: groups of four taps, activations as uint8 (128 more than
// their int8 value), weights as int8.
#pragma once

#include "host/kernels/pack_x86.hpp"

namespace pmt::host {
namespace {

struct VnniX86 : PackX86 {
  static constexpr int32_t group = 4;  // taps that one dot() adds to a lane
  // Activations keep their zero point: sums start at -(zero point + 128) * sum(weights).
  static constexpr bool compensates = true;
  using Activation = uint8_t;
  using Weight = int8_t;

  static Activation stored(int32_t value, int32_t) { return static_cast<Activation>(value + 128); }

  static void convert(const int8_t* values, int32_t count, int32_t zero_point, Activation* converted) {
    const __m256i flip = _mm256_set1_epi8(-128);
    int32_t i = 0;
    for (; i + 32 <= count; i += 32) {
      const __m256i bytes = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(values + i));
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(converted + i), _mm256_xor_si256(bytes, flip));
    }
    for (; i < count; ++i) converted[i] = stored(values[i], zero_point);
  }

  // Four channels of 16 taps become groups of four channels, `stride` bytes apart.
  static constexpr int32_t pack_channels = 4;
  static void store_groups(const Taps (&channels)[pack_channels], int32_t groups, int32_t stride, uint8_t* packed) {
    const __m128i low01 = _mm_unpacklo_epi32(channels[0], channels[1]);
    const __m128i low23 = _mm_unpacklo_epi32(channels[2], channels[3]);
    const __m128i high01 = _mm_unpackhi_epi32(channels[0], channels[1]);
    const __m128i high23 = _mm_unpackhi_epi32(channels[2], channels[3]);
    const __m128i group[4] = {_mm_unpacklo_epi64(low01, low23), _mm_unpackhi_epi64(low01, low23),
                              _mm_unpacklo_epi64(high01, high23), _mm_unpackhi_epi64(high01, high23)};
    for (int32_t g = 0; g < groups; ++g) {
      _mm_storeu_si128(reinterpret_cast<__m128i*>(packed + g * stride), group[g]);
    }
  }
};

}  // namespace
}  // namespace pmt::host
