// Sixteen channels of a pixel, for the depthwise kernels of x86. Included after <immintrin.h>.
#pragma once

#include <cstdint>
#include <cstring>

namespace pmt::host {
namespace {

// Whole: 16 channels are there to be read and written; else `channels`, fewer, through a buffer.
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

}  // namespace
}  // namespace pmt::host
