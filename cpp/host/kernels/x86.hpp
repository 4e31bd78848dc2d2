// Steps that the kernels of several x86 instruction sets share. Included after <immintrin.h>.
#pragma once

#include <cstdint>
#include <cstring>

namespace pmt::host {
namespace {

// Sixteen weights of a channel.
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

// Sixteen channels of a pixel, for depthwise convolutions. Whole: 16 channels are there to be read and written; else
// `channels`, fewer, through a buffer.
struct PixelX86 {
  template <bool Whole>
  static __m128i load(const int8_t* values, int32_t channels) {
    if constexpr (Whole) return _mm_loadu_si128(reinterpret_cast<const __m128i*>(values));
    int8_t some[16] = {};
    std::memcpy(some, values, static_cast<size_t>(channels));
    return _mm_loadu_si128(reinterpret_cast<const __m128i*>(some));
  }

  template <bool Whole>
  static void store(__m128i bytes, int64_t channels, int8_t* to) {
    if constexpr (Whole) {
      _mm_storeu_si128(reinterpret_cast<__m128i*>(to), bytes);
    } else {
      int8_t some[16];
      _mm_storeu_si128(reinterpret_cast<__m128i*>(some), bytes);
      std::memcpy(to, some, static_cast<size_t>(channels));
    }
  }
};

// The packed form that the vpdpbusd instructions ask for: groups of four taps, activations as uint8 (128 more than
// their int8 value), weights as int8.
struct VnniX86 : PackX86 {
  static constexpr int32_t group = 4;  // taps that one dot() adds to a lane
  // Activations keep their zero point: sums start at -(zero point + 128) * sum(weights).
  static constexpr bool compensates = true;
  static constexpr bool dots_in_pairs = false;
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
