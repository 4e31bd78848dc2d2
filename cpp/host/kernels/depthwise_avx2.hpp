// The entries of depthwise_conv2d (depthwise.hpp) for AVX2: two pixels widened to int16, so that one
// vpmaddwd multiplies two taps of 8 channels. Interleaving within 128-bit lanes gives sums of the
// channels {0-3, 8-11} and {4-7, 12-15}; the saturating packs of the requantization put them back in
// order.
#pragma once

#include "host/kernels/depthwise.hpp"
#include "host/kernels/isa_avx2.hpp"
#include "host/kernels/x86.hpp"

namespace pmt::host {
namespace {

class DepthwiseAvx2 {
 public:
  static constexpr int32_t taps = 2;
  static constexpr int32_t most_outputs = 4;  // 8 vectors of sums
  static constexpr int32_t group_weights = 2 * depthwise_block;

  // Channels {0-3, 8-11} and {4-7, 12-15}.
  struct Sums {
    __m256i low, high;
  };

  // In the order of the lanes.
  struct Layer {
    const int16_t* weights;
    __m256i bias[2];
    __m256 scales[2];
    RangeAvx2 range;
  };

  static int64_t block_bytes(const Window& w) {
    return w.kernel_h * EntryRow<DepthwiseAvx2>::groups_of(w) * group_weights * static_cast<int64_t>(sizeof(int16_t));
  }

  // [ky][pair of taps][low, high channels][channel][tap of the pair]
  static void pack_block(const PackArgs& args, int32_t first_channel, uint8_t* packed) {
    const Window& w = args.shape.window;
    auto* to = reinterpret_cast<int16_t*>(packed);
    for (int32_t ky = 0; ky < w.kernel_h; ++ky) {
      for (int32_t kx = 0; kx < taps * EntryRow<DepthwiseAvx2>::groups_of(w); kx += taps) {
        for (int32_t lane = 0; lane < depthwise_block; ++lane) {
          const int32_t channel = first_channel + channel_of_lane(lane);
          for (int32_t tap = 0; tap < taps; ++tap) {
            *to++ = static_cast<int16_t>(depthwise_weight(args, ky, kx + tap, channel));
          }
        }
      }
    }
  }

  static Layer layer_of(const LinearArgs& args, const uint8_t* packed, int32_t first) {
    Layer layer;
    layer.weights = reinterpret_cast<const int16_t*>(packed);
    layer.range = Avx2::range(args.output_zero, args.clamp_min, args.clamp_max);
    const __m256i bias[2] = {Avx2::load(args.bias + first), Avx2::load(args.bias + first + 8)};
    layer.bias[0] = _mm256_permute2x128_si256(bias[0], bias[1], 0x20);
    layer.bias[1] = _mm256_permute2x128_si256(bias[0], bias[1], 0x31);
    const __m256 scales[2] = {Avx2::load_floats(args.scales + first), Avx2::load_floats(args.scales + first + 8)};
    layer.scales[0] = _mm256_permute2f128_ps(scales[0], scales[1], 0x20);
    layer.scales[1] = _mm256_permute2f128_ps(scales[0], scales[1], 0x31);
    return layer;
  }

  template <bool Whole>
  static void fill_row(const LinearArgs& args, const EntryRow<DepthwiseAvx2>& entries, const int8_t* row, uint8_t* to) {
    const __m256i zero_point = _mm256_set1_epi16(static_cast<int16_t>(args.input_zero));
    const __m256i padding = _mm256_setzero_si256();
    const int32_t channels = args.in.channels, step = entries.apart, count = entries.count * step;
    const int32_t left = args.window.pad_left, right = left + args.in.width;
    const auto at = [&](int32_t p) PMT_INLINE {
      return p >= left && p < right ? pixel<Whole>(row + (p - left) * channels, channels, zero_point) : padding;
    };
    const auto keep = [&](__m256i pixel, __m256i next) PMT_INLINE {
      store_entry(pixel, next, to);
      to += depthwise_entry_bytes;
    };
    int32_t p = 0;
    for (; p < left && p < count; p += step) keep(at(p), at(p + 1));
    const int8_t* values = row + (p - left) * channels;
    if (step == 1 && p < count && p + 1 < right) {
      __m256i previous = pixel<Whole>(values, channels, zero_point);
      for (; p < count && p + 1 < right; ++p) {
        values += channels;
        const __m256i next = pixel<Whole>(values, channels, zero_point);
        keep(previous, next);
        previous = next;
      }
    }
    for (; p < count && p + 1 < right; p += step) {
      keep(pixel<Whole>(values, channels, zero_point), pixel<Whole>(values + channels, channels, zero_point));
      values += step * channels;
    }
    for (; p < count; p += step) keep(at(p), at(p + 1));
  }

  template <bool Modest>
  static Sums start(const Layer& layer, int32_t, int32_t) {
    if constexpr (Modest) return {layer.bias[0], layer.bias[1]};
    return {_mm256_setzero_si256(), _mm256_setzero_si256()};
  }

  static const int16_t* row_weights(const Layer& layer, int32_t groups) {
    return layer.weights + groups * group_weights;
  }
  static Sums load_weights(const int16_t* weights) {
    return {Avx2::load(weights), Avx2::load(weights + depthwise_block)};
  }
  static void multiply(Sums& sums, const uint8_t* entry, const Sums& weights) {
    const auto* values = reinterpret_cast<const __m256i*>(entry);
    sums.low = dot(sums.low, values, weights.low);
    sums.high = dot(sums.high, values + 1, weights.high);
  }

  template <bool Whole, bool Modest, int32_t Count>
  static void store(const Layer& layer, const Sums (&sums)[Count], int64_t channels, int8_t* out) {
    unrolled<(Count + 1) / 2>([&](auto pair) PMT_INLINE {
      constexpr int32_t i = 2 * pair, next = i + 1 < Count ? i + 1 : i;
      const __m256i rounded[4] = {round<Modest>(layer, 0, sums[i].low), round<Modest>(layer, 1, sums[i].high),
                                  round<Modest>(layer, 0, sums[next].low), round<Modest>(layer, 1, sums[next].high)};
      const __m256i bytes = narrow<!Modest>(rounded, layer.range);
      PixelX86::store<Whole>(_mm256_castsi256_si128(bytes), channels, out + i * channels);
      if (next > i) PixelX86::store<Whole>(_mm256_extracti128_si256(bytes, 1), channels, out + next * channels);
    });
  }

 private:
  // One asm, because GCC 12 else keeps the products of a tile beside its sums and spills them.
  static __m256i dot(__m256i sum, const __m256i* activations, __m256i weights) {
    __m256i product;
    asm("vpmaddwd %2, %3, %1\n\tvpaddd %1, %0, %0" : "+x"(sum), "=&x"(product) : "m"(*activations), "x"(weights));
    return sum;
  }

  // Channels {0-3, 8-11} and {4-7, 12-15} of two positions to 16 outputs each.
  template <bool Clamps>
  static __m256i narrow(const __m256i (&rounded)[4], const RangeAvx2& range) {
    __m256i positions[2];
    for (int32_t i = 0; i < 2; ++i) {
      positions[i] = _mm256_adds_epi16(_mm256_packs_epi32(rounded[2 * i], rounded[2 * i + 1]), range.zero_point);
    }
    const __m256i packed = _mm256_packs_epi16(positions[0], positions[1]);
    return _mm256_permute4x64_epi64(Clamps ? Avx2::clamp(packed, range) : packed, 0xD8);
  }

  static int32_t channel_of_lane(int32_t lane) {
    const int32_t high = lane / 8, within = lane % 8;
    return within / 4 * 8 + high * 4 + within % 4;
  }

  template <bool Whole>
  static __m256i pixel(const int8_t* values, int32_t channels, __m256i zero_point) {
    const __m128i bytes = PixelX86::load<Whole>(values, channels);
    return _mm256_sub_epi16(_mm256_cvtepi8_epi16(bytes), zero_point);
  }

  static void store_entry(__m256i left, __m256i right, uint8_t* to) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), _mm256_unpacklo_epi16(left, right));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to + 32), _mm256_unpackhi_epi16(left, right));
  }

  template <bool Modest>
  static __m256i round(const Layer& layer, int32_t half, __m256i sums) {
    if constexpr (Modest) return Avx2::round_modest(sums, layer.scales[half]);
    return Avx2::round(Avx2::real(sums, Avx2::to_float(layer.bias[half]), layer.scales[half]), layer.range);
  }
};

}  // namespace
}  // namespace pmt::host
