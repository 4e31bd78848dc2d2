// AVX2: groups of two int16 activations, zero point removed, by vpmaddwd.
// Included behind <immintrin.h> and a target pragma.
#pragma once

namespace pmt::host {

struct Avx2 {
  using Int32 = __m256i;
  using Float = __m256;
  using Activation = int16_t;
  using Weight = int16_t;
  static constexpr int32_t lanes = 8;
  static constexpr int32_t group = 2;    // activations that dot() adds up in a lane
  static constexpr int32_t columns = 2;  // vectors of channels in a panel
  // Positions of a tile: what 16 registers hold.
  static constexpr int32_t rows(int32_t columns_used) { return columns_used == 2 ? 6 : 8; }
  static constexpr bool compensates = false;  // the zero point is taken off the activations
  static constexpr int32_t compensation_offset(int32_t) { return 0; }
  static constexpr Activation padding(int32_t) { return 0; }

  static Int32 zero() { return _mm256_setzero_si256(); }
  static Int32 load(const int32_t* values) { return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(values)); }
  static Int32 load_weights(const Weight* weights) {
    return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(weights));
  }
  static Int32 broadcast(const Activation* values) {
    int32_t two;
    __builtin_memcpy(&two, values, sizeof two);
    return _mm256_set1_epi32(two);
  }

  // One asm, because GCC 12 else spreads the products of a tile over more registers than there are.
  static Int32 dot(Int32 sum, Int32 activations, Int32 weights) {
    Int32 product;
    asm("vpmaddwd %3, %2, %1\n\tvpaddd %1, %0, %0" : "+x"(sum), "=&x"(product) : "x"(activations), "x"(weights));
    return sum;
  }

  // 16 activations.
  static void widen16(const int8_t* values, int32_t zero_point, Activation* wide) {
    const __m256i all = _mm256_cvtepi8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(values)));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(wide),
                        _mm256_sub_epi16(all, _mm256_set1_epi16(static_cast<int16_t>(zero_point))));
  }
  static Activation widen(int8_t value, int32_t zero_point) { return static_cast<Activation>(value - zero_point); }

  // clamp(weights + mu * signs, -127, 127) of 16 weights; mu 1..127.
  static void perturb16(const int8_t* weights, const int8_t* signs, int32_t mu, int8_t* to) {
    __m128i values = _mm_loadu_si128(reinterpret_cast<const __m128i*>(weights));
    if (signs != nullptr) {
      const __m128i sign = _mm_loadu_si128(reinterpret_cast<const __m128i*>(signs));
      values = _mm_adds_epi8(values, _mm_sign_epi8(_mm_set1_epi8(static_cast<char>(mu)), sign));
      values = _mm_max_epi8(values, _mm_set1_epi8(-127));
    }
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to), values);
  }

  // 16 channels of 16 taps to 8 groups of 16 channels.
  static void transpose_block(const int8_t (&values)[16][16], Weight* to) {
    for (int32_t half = 0; half < 2; ++half) {
      __m128i rows[8], pairs[8], quads[8];
      for (int32_t i = 0; i < 8; ++i) {
        rows[i] = _mm_load_si128(reinterpret_cast<const __m128i*>(values[8 * half + i]));
      }
      for (int32_t i = 0; i < 4; ++i) {
        pairs[2 * i] = _mm_unpacklo_epi16(rows[2 * i], rows[2 * i + 1]);
        pairs[2 * i + 1] = _mm_unpackhi_epi16(rows[2 * i], rows[2 * i + 1]);
      }
      for (int32_t i = 0; i < 2; ++i) {
        for (int32_t k = 0; k < 2; ++k) {
          quads[4 * i + 2 * k] = _mm_unpacklo_epi32(pairs[4 * i + k], pairs[4 * i + 2 + k]);
          quads[4 * i + 2 * k + 1] = _mm_unpackhi_epi32(pairs[4 * i + k], pairs[4 * i + 2 + k]);
        }
      }
      for (int32_t group = 0; group < 8; ++group) {
        const __m128i low = quads[group / 2], high = quads[4 + group / 2];
        const __m128i channels = group % 2 == 0 ? _mm_unpacklo_epi64(low, high) : _mm_unpackhi_epi64(low, high);
        _mm256_storeu_si256(reinterpret_cast<__m256i*>(to + 32 * group + 16 * half), _mm256_cvtepi8_epi16(channels));
      }
    }
  }

  static Float load_floats(const float* values) { return _mm256_loadu_ps(values); }
  static Float to_float(Int32 values) { return _mm256_cvtepi32_ps(values); }
  static Float scaled(Int32 sum, Float bias, Float scale) {
    return _mm256_mul_ps(_mm256_add_ps(_mm256_cvtepi32_ps(sum), bias), scale);
  }
  static void store_floats(Float values, float* to) { _mm256_storeu_ps(to, values); }

  // Output range of a layer.
  struct Range {
    __m256i zero_point, low, high;
    __m256 limit;
  };
  static Range range(int32_t zero_point, int32_t low, int32_t high) {
    return {_mm256_set1_epi16(static_cast<int16_t>(zero_point)), _mm256_set1_epi8(static_cast<char>(low)),
            _mm256_set1_epi8(static_cast<char>(high)), _mm256_set1_ps(1e9f)};
  }
  // Above int32 the conversion gives INT32_MIN, hence the limit; below, INT32_MIN is right.
  static __m256i rounded(Float value, const Range& range) {
    return _mm256_cvtps_epi32(_mm256_min_ps(value, range.limit));
  }
  // Four vectors to 32 bytes, in their order.
  static __m256i narrow(const Float (&values)[4], const Range& range) {
    const __m256i a = _mm256_packs_epi32(rounded(values[0], range), rounded(values[1], range));
    const __m256i b = _mm256_packs_epi32(rounded(values[2], range), rounded(values[3], range));
    const __m256i bytes =
        _mm256_packs_epi16(_mm256_adds_epi16(a, range.zero_point), _mm256_adds_epi16(b, range.zero_point));
    const __m256i clamped = _mm256_min_epi8(_mm256_max_epi8(bytes, range.low), range.high);
    return _mm256_permutevar8x32_epi32(clamped, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
  }

  static void store8(__m128i bytes, int8_t* to) { _mm_storel_epi64(reinterpret_cast<__m128i*>(to), bytes); }
  static void store16(__m128i bytes, int8_t* to) { _mm_storeu_si128(reinterpret_cast<__m128i*>(to), bytes); }

  // A tile of sums to int8: `lanes * Columns` channels for every row.
  template <int32_t Rows, int32_t Columns>
  static void requantise(const Int32 (&sums)[Rows][Columns], const int32_t* bias, const float* scales,
                         const Range& range, int8_t* const* out) {
    constexpr int32_t at_once = 4 / Columns;
    Float biases[Columns], factors[Columns];
    for (int32_t c = 0; c < Columns; ++c) {
      biases[c] = to_float(load(bias + c * lanes));
      factors[c] = load_floats(scales + c * lanes);
    }
    for (int32_t r = 0; r < Rows; r += at_once) {
      Float values[4];
      for (int32_t i = 0; i < 4; ++i) {
        const int32_t row = r + i / Columns < Rows ? r + i / Columns : r;
        values[i] = scaled(sums[row][i % Columns], biases[i % Columns], factors[i % Columns]);
      }
      const __m256i bytes = narrow(values, range);
      const __m128i low = _mm256_castsi256_si128(bytes), high = _mm256_extracti128_si256(bytes, 1);
      if constexpr (Columns == 2) {
        store16(low, out[r]);
        if (r + 1 < Rows) store16(high, out[r + 1]);
      } else {
        store8(low, out[r]);
        if (r + 1 < Rows) store8(_mm_unpackhi_epi64(low, low), out[r + 1]);
        if (r + 2 < Rows) store8(high, out[r + 2]);
        if (r + 3 < Rows) store8(_mm_unpackhi_epi64(high, high), out[r + 3]);
      }
    }
  }
};

}  // namespace pmt::host
