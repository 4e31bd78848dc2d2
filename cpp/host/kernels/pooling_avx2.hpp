// Pools and means over a window, 8 or 16 channels at once: 256-bit code of every x86 table.
// Include where the compiler's target is AVX2 or more, after the headers of the core.
#pragma once

#include <immintrin.h>

#include "core/kernels/portable/portable.hpp"
#include "core/kernels/table.hpp"

namespace pmt::host {
namespace {

struct PoolingAvx2 {
  static void average_pool(const PoolArgs& args) {
    if (args.in.channels < 8) return portable::average_pool(args);
    for_each_position<Average>(args);
  }

  static void max_pool(const PoolArgs& args) {
    if (args.in.channels < 8) return portable::max_pool(args);
    for_each_position<Maximum>(args);
  }

  static void mean(const PoolArgs& args) {
    if (args.in.channels < 8) return portable::mean(args);
    PoolArgs whole = args;
    whole.out = {1, 1, args.in.channels};
    whole.window = {args.in.height, args.in.width, 1, 1, 0, 0};
    args.same_quantization ? for_each_position<Average>(whole) : for_each_position<RescaledMean>(whole);
  }

 private:
  // The part of a window that lies inside the input.
  struct Pixels {
    const int8_t* first;
    int32_t rows, columns;
    int32_t row_stride, column_stride;
  };

  struct Span {
    int32_t begin, count;
  };

  static Span inside(int32_t position, int32_t stride, int32_t padding, int32_t kernel, int32_t size) {
    const int32_t start = position * stride - padding;
    const int32_t begin = start < 0 ? 0 : start;
    const int32_t end = start + kernel > size ? size : start + kernel;
    return {begin, end - begin};
  }

  static Pixels window_pixels(const PoolArgs& args, const int8_t* input, int32_t y, int32_t x) {
    const Window& w = args.window;
    const Span rows = inside(y, w.stride_h, w.pad_top, w.kernel_h, args.in.height);
    const Span columns = inside(x, w.stride_w, w.pad_left, w.kernel_w, args.in.width);
    const int32_t channels = args.in.channels;
    const int8_t* first = input + (rows.begin * args.in.width + columns.begin) * channels;
    return {first, rows.count, columns.count, args.in.width * channels, channels};
  }

  template <typename Reduction>
  static void for_each_position(const PoolArgs& args) {
    const Reduction reduction(args);
    for (int32_t i = 0; i < args.batch.images; ++i) {
      const int8_t* input = args.input + i * args.batch.input_stride;
      int8_t* output = args.output + i * args.batch.output_stride;
      for (int32_t y = 0; y < args.out.height; ++y) {
        for (int32_t x = 0; x < args.out.width; ++x) {
          for_each_channel(reduction, window_pixels(args, input, y, x), args.in.channels, output);
          output += args.in.channels;
        }
      }
    }
  }

  // The last vector ends with the last channel, so that no byte beyond a pixel is touched: some
  // channels are computed twice.
  template <typename Reduction>
  static void for_each_channel(const Reduction& reduction, const Pixels& pixels, int32_t channels, int8_t* output) {
    int32_t c = 0;
    for (; c + 16 <= channels; c += 16) reduction.template run<Sixteen>(pixels, c, output);
    if (c == channels) return;
    if (channels >= 16) {
      reduction.template run<Sixteen>(pixels, channels - 16, output);
      return;
    }
    reduction.template run<Eight>(pixels, 0, output);
    if (channels > 8) reduction.template run<Eight>(pixels, channels - 8, output);
  }

  struct Sixteen {
    static __m128i load(const int8_t* p) { return _mm_loadu_si128(reinterpret_cast<const __m128i*>(p)); }
    static void store(int8_t* p, __m128i values) { _mm_storeu_si128(reinterpret_cast<__m128i*>(p), values); }
  };

  struct Eight {
    static __m128i load(const int8_t* p) { return _mm_loadl_epi64(reinterpret_cast<const __m128i*>(p)); }
    static void store(int8_t* p, __m128i values) { _mm_storel_epi64(reinterpret_cast<__m128i*>(p), values); }
  };

  struct Bounds {
    __m128i low, high;

    explicit Bounds(const PoolArgs& args)
        : low(_mm_set1_epi8(static_cast<int8_t>(args.clamp_min))),
          high(_mm_set1_epi8(static_cast<int8_t>(args.clamp_max))) {}

    __m128i clamp(__m128i values) const { return _mm_min_epi8(_mm_max_epi8(values, low), high); }
  };

  struct Maximum {
    Bounds bounds;

    explicit Maximum(const PoolArgs& args) : bounds(args) {}

    template <typename Lanes>
    void run(const Pixels& pixels, int32_t channel, int8_t* output) const {
      __m128i largest = _mm_set1_epi8(-128);
      for (int32_t y = 0; y < pixels.rows; ++y) {
        const int8_t* row = pixels.first + y * pixels.row_stride + channel;
        for (int32_t x = 0; x < pixels.columns; ++x) {
          largest = _mm_max_epi8(largest, Lanes::load(row + x * pixels.column_stride));
        }
      }
      Lanes::store(output + channel, bounds.clamp(largest));
    }
  };

  struct Sums {
    __m256i first, second;  // channels 0..7 and 8..15
  };

  template <typename Lanes>
  static Sums window_sums(const Pixels& pixels, int32_t channel) {
    Sums sums = {_mm256_setzero_si256(), _mm256_setzero_si256()};
    __m256i narrow = _mm256_setzero_si256();
    int32_t room = narrow_pixels;
    for (int32_t y = 0; y < pixels.rows; ++y) {
      const int8_t* pixel = pixels.first + y * pixels.row_stride + channel;
      for (int32_t x = 0; x < pixels.columns; ++x, pixel += pixels.column_stride) {
        narrow = _mm256_add_epi16(narrow, _mm256_cvtepi8_epi16(Lanes::load(pixel)));
        if (--room == 0) {
          widen(sums, narrow);
          narrow = _mm256_setzero_si256();
          room = narrow_pixels;
        }
      }
    }
    widen(sums, narrow);
    return sums;
  }

  static constexpr int32_t narrow_pixels = 256;  // 256 * -128 is the least int16

  static void widen(Sums& sums, __m256i narrow) {
    sums.first = _mm256_add_epi32(sums.first, _mm256_cvtepi16_epi32(_mm256_castsi256_si128(narrow)));
    sums.second = _mm256_add_epi32(sums.second, _mm256_cvtepi16_epi32(_mm256_extracti128_si256(narrow, 1)));
  }

  static __m256 average(__m256i sums, const Pixels& pixels) {
    return _mm256_div_ps(_mm256_cvtepi32_ps(sums), _mm256_set1_ps(static_cast<float>(pixels.rows * pixels.columns)));
  }

  // Two vectors of int32 as saturated int16, in order.
  static __m256i join(__m256i first, __m256i second) {
    return _mm256_permute4x64_epi64(_mm256_packs_epi32(first, second), 0xD8);
  }

  static __m128i narrow_bytes(__m256i values) {
    return _mm_packs_epi16(_mm256_castsi256_si128(values), _mm256_extracti128_si256(values, 1));
  }

  struct Average {
    Bounds bounds;

    explicit Average(const PoolArgs& args) : bounds(args) {}

    template <typename Lanes>
    void run(const Pixels& pixels, int32_t channel, int8_t* output) const {
      const Sums sums = window_sums<Lanes>(pixels, channel);
      const __m256i averages =
          join(_mm256_cvtps_epi32(average(sums.first, pixels)), _mm256_cvtps_epi32(average(sums.second, pixels)));
      Lanes::store(output + channel, bounds.clamp(narrow_bytes(averages)));
    }
  };

  struct RescaledMean {
    Bounds bounds;
    __m256 input_zero, ratio;
    __m256i output_zero;

    explicit RescaledMean(const PoolArgs& args)
        : bounds(args),
          input_zero(_mm256_set1_ps(static_cast<float>(args.input_zero))),
          ratio(_mm256_set1_ps(args.ratio)),
          output_zero(_mm256_set1_epi16(static_cast<int16_t>(args.output_zero))) {}

    // A value below int32 becomes its minimum; one above would too, so it is bounded first.
    __m256i steps(__m256i sums, const Pixels& pixels) const {
      const __m256 scaled = _mm256_mul_ps(_mm256_sub_ps(average(sums, pixels), input_zero), ratio);
      return _mm256_cvtps_epi32(_mm256_min_ps(scaled, _mm256_set1_ps(32767.0f)));
    }

    template <typename Lanes>
    void run(const Pixels& pixels, int32_t channel, int8_t* output) const {
      const Sums sums = window_sums<Lanes>(pixels, channel);
      const __m256i means = _mm256_adds_epi16(join(steps(sums.first, pixels), steps(sums.second, pixels)), output_zero);
      Lanes::store(output + channel, bounds.clamp(narrow_bytes(means)));
    }
  };
};

}  // namespace
}  // namespace pmt::host
