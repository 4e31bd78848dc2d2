// Residual add, 256-bit code of every x86 table.
// Include where the compiler's target is AVX2 or more, after the headers of the core.
#pragma once

#include <immintrin.h>

#include "core/kernels/table.hpp"
#include "host/kernels/requantize_avx2.hpp"

namespace pmt::host {
namespace {

struct AddAvx2 {
  static void add(const AddArgs& args) {
    const AddAvx2 kernel(args);
    for (int32_t i = 0; i < args.images; ++i) {
      kernel.add_image(args.input[0] + i * args.input_stride[0], args.input[1] + i * args.input_stride[1], args.count,
                       args.output + i * args.output_stride);
    }
  }

 private:
  explicit AddAvx2(const AddArgs& args)
      : zero_{_mm256_set1_epi32(args.input_zero[0]), _mm256_set1_epi32(args.input_zero[1])},
        scale_{_mm256_set1_ps(args.input_scale[0]), _mm256_set1_ps(args.input_scale[1])},
        output_scale_(_mm256_set1_ps(args.output_scale)),
        range_(RequantizeAvx2::range(args.output_zero, args.clamp_min, args.clamp_max)) {}

  void add_image(const int8_t* a, const int8_t* b, int32_t count, int8_t* output) const {
    int32_t i = 0;
    for (; i + 32 <= count; i += 32) {
      const __m256i sums[4] = {steps(a + i, b + i), steps(a + i + 8, b + i + 8), steps(a + i + 16, b + i + 16),
                               steps(a + i + 24, b + i + 24)};
      RequantizeAvx2::store(output + i, RequantizeAvx2::narrow<true>(sums, range_));
    }
    for (; i + 8 <= count; i += 8) _mm_storel_epi64(reinterpret_cast<__m128i*>(output + i), eight(a + i, b + i));
    if (i < count) {
      const auto rest = static_cast<size_t>(count - i);
      int8_t last[3][8] = {};
      __builtin_memcpy(last[0], a + i, rest);
      __builtin_memcpy(last[1], b + i, rest);
      _mm_storel_epi64(reinterpret_cast<__m128i*>(last[2]), eight(last[0], last[1]));
      __builtin_memcpy(output + i, last[2], rest);
    }
  }

  __m128i eight(const int8_t* a, const int8_t* b) const {
    const __m256i same = steps(a, b);
    return _mm256_castsi256_si128(RequantizeAvx2::narrow<true>({same, same, same, same}, range_));
  }

  __m256 real(const int8_t* values, int operand) const {
    const __m128i bytes = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(values));
    const __m256i differences = _mm256_sub_epi32(_mm256_cvtepi8_epi32(bytes), zero_[operand]);
    return _mm256_mul_ps(_mm256_cvtepi32_ps(differences), scale_[operand]);
  }

  // Rounded output steps without the zero point.
  __m256i steps(const int8_t* a, const int8_t* b) const {
    return RequantizeAvx2::round(_mm256_div_ps(_mm256_add_ps(real(a, 0), real(b, 1)), output_scale_), range_);
  }

  __m256i zero_[2];
  __m256 scale_[2];
  __m256 output_scale_;
  RangeAvx2 range_;
};

}  // namespace
}  // namespace pmt::host
