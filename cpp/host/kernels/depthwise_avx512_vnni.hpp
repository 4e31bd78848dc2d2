// The entries of depthwise_conv2d (depthwise.hpp) for AVX-512 VNNI: the bytes of four pixels, 128
// more than their int8 value, side by side in the lane of their channel, so that one vpdpbusd
// multiplies four taps of 16 channels. An entry is the one before it, shifted, with the next pixel.
#pragma once

#include "host/kernels/depthwise.hpp"
#include "host/kernels/isa_avx512_vnni.hpp"
#include "host/kernels/pixel_x86.hpp"

namespace pmt::host {
namespace {

class DepthwiseAvx512Vnni {
 public:
  static constexpr int32_t taps = 4;
  static constexpr int32_t most_outputs = 8;
  static constexpr int32_t group_weights = taps * depthwise_block;

  using Sums = __m512i;

  struct Layer {
    const int32_t* starts;  // of every kernel row: -(zero point + 128) * sum(weights)
    const int8_t* weights;
    __m512i bias;
    __m512 scales;
    Avx512Vnni::Range range;
  };

  static int64_t block_bytes(const Window& w) {
    return static_cast<int64_t>(w.kernel_h) *
           (start_bytes + EntryRow<DepthwiseAvx512Vnni>::groups_of(w) * group_weights);
  }

  // [ky][channel] starts, then [ky][four taps][channel][tap of the four]
  static void pack_block(const PackArgs& args, int32_t first_channel, uint8_t* packed) {
    const Window& w = args.shape.window;
    auto* to = reinterpret_cast<int8_t*>(packed + w.kernel_h * start_bytes);
    for (int32_t ky = 0; ky < w.kernel_h; ++ky) {
      int32_t sums[depthwise_block] = {};
      for (int32_t kx = 0; kx < taps * EntryRow<DepthwiseAvx512Vnni>::groups_of(w); kx += taps) {
        for (int32_t channel = 0; channel < depthwise_block; ++channel) {
          for (int32_t tap = 0; tap < taps; ++tap) {
            const int32_t weight = depthwise_weight(args, ky, kx + tap, first_channel + channel);
            sums[channel] += weight;
            *to++ = static_cast<int8_t>(weight);
          }
        }
      }
      for (int32_t& sum : sums) sum *= -(args.input_zero + 128);
      std::memcpy(packed + ky * start_bytes, sums, sizeof sums);
    }
  }

  static Layer layer_of(const LinearArgs& args, const uint8_t* packed, int32_t first) {
    return {reinterpret_cast<const int32_t*>(packed),
            reinterpret_cast<const int8_t*>(packed + args.window.kernel_h * start_bytes),
            Avx512Vnni::load(args.bias + first), Avx512Vnni::load_floats(args.scales + first),
            Avx512Vnni::range(args.output_zero, args.clamp_min, args.clamp_max)};
  }

  template <bool Whole>
  static void fill_row(const LinearArgs& args, const EntryRow<DepthwiseAvx512Vnni>& entries, const int8_t* row,
                       uint8_t* to) {
    if (entries.apart == 2) {
      fill_even<Whole>(args, entries.count, row, to);
    } else {
      fill_all<Whole>(args, entries.count, row, to);
    }
  }

  // Rows outside of the image have no part in the sums, nor in what makes up for the 128.
  template <bool Modest>
  static Sums start(const Layer& layer, int32_t begin, int32_t end) {
    Sums sums = Modest ? layer.bias : _mm512_setzero_si512();
    for (int32_t ky = begin; ky < end; ++ky) {
      sums = _mm512_add_epi32(sums, Avx512Vnni::load(layer.starts + ky * depthwise_block));
    }
    return sums;
  }

  static const int8_t* row_weights(const Layer& layer, int32_t groups) {
    return layer.weights + groups * group_weights;
  }
  static Sums load_weights(const int8_t* weights) { return Avx512Vnni::load(weights); }
  static void multiply(Sums& sums, const uint8_t* entry, const Sums& weights) {
    sums = Avx512Vnni::dot(sums, Avx512Vnni::load(entry), weights);
  }

  template <bool Whole, bool Modest, int32_t Count>
  static void store(const Layer& layer, const Sums (&sums)[Count], int64_t channels, int8_t* out) {
    unrolled<(Count + 3) / 4>([&](auto quad) PMT_INLINE {
      constexpr int32_t first = 4 * quad, last = Count - 1;
      const __m512i rounded[4] = {round<Modest>(layer, sums[first]),
                                  round<Modest>(layer, sums[first + 1 < last ? first + 1 : last]),
                                  round<Modest>(layer, sums[first + 2 < last ? first + 2 : last]),
                                  round<Modest>(layer, sums[first + 3 < last ? first + 3 : last])};
      const __m512i bytes = Avx512Vnni::narrow(rounded, layer.range);
      unrolled<4>([&](auto i) PMT_INLINE {
        if constexpr (first + i <= last)
          PixelX86::store<Whole>(Avx512Vnni::part(bytes, i), channels, out + (first + i) * channels);
      });
    });
  }

 private:
  static constexpr int32_t start_bytes = depthwise_block * static_cast<int32_t>(sizeof(int32_t));

  // The bytes of a pixel as they are, in their channels' lanes.
  template <bool Whole>
  static __m512i pixel(const int8_t* values, int32_t channels) {
    return _mm512_cvtepu8_epi32(PixelX86::load<Whole>(values, channels));
  }

  // Pixel p of the padded row completes entry p - 3.
  template <bool Whole>
  static void fill_all(const LinearArgs& args, int32_t count, const int8_t* row, uint8_t* to) {
    const int32_t channels = args.in.channels, left = args.window.pad_left;
    const int32_t end = count + 3, right = left + args.in.width < end ? left + args.in.width : end;
    const __m512i padding = _mm512_set1_epi32(static_cast<uint8_t>(args.input_zero));
    __m512i entry = _mm512_set1_epi8(static_cast<int8_t>(args.input_zero ^ -128));
    const auto keep = [&]() PMT_INLINE {
      Avx512Vnni::store(to, entry);
      to += depthwise_entry_bytes;
    };
    for (int32_t p = 3; p < left && p < end; ++p) keep();
    int32_t p = left;
    for (; p < 3; ++p) {
      entry = push(entry, p < right ? pixel<Whole>(row, channels) : padding);
      row += channels;
    }
#pragma GCC unroll 4
    for (; p < right; ++p) {
      entry = push(entry, pixel<Whole>(row, channels));
      row += channels;
      keep();
    }
    for (; p < end; ++p) {
      entry = push(entry, padding);
      keep();
    }
  }

  // Every other entry: the pixels p and p + 1 complete the one that starts with p - 2.
  template <bool Whole>
  static void fill_even(const LinearArgs& args, int32_t count, const int8_t* row, uint8_t* to) {
    const int32_t channels = args.in.channels, left = args.window.pad_left, right = left + args.in.width;
    const int32_t end = 2 * count + 2;
    const __m512i padding = _mm512_set1_epi32(static_cast<uint8_t>(args.input_zero));
    __m512i entry = _mm512_set1_epi8(static_cast<int8_t>(args.input_zero ^ -128));
    const auto keep = [&]() PMT_INLINE {
      Avx512Vnni::store(to, entry);
      to += depthwise_entry_bytes;
    };
    const auto at = [&](int32_t p) PMT_INLINE {
      return p >= left && p < right ? pixel<Whole>(row + (p - left) * channels, channels) : padding;
    };
    int32_t p = left - left % 2;
    for (int32_t before = 2; before < p && before < end; before += 2) keep();
    for (; p < end && (p < 2 || p < left); p += 2) {
      entry = push(entry, at(p), at(p + 1));
      if (p >= 2) keep();
    }
    const int8_t* values = row + (p - left) * channels;
    const int32_t both_inside = (right < end ? right : end) - 1;
#pragma GCC unroll 4
    for (; p < both_inside; p += 2) {
      entry = push(entry, pixel<Whole>(values, channels), pixel<Whole>(values + channels, channels));
      values += 2 * channels;
      keep();
    }
    for (; p < end; p += 2) {
      entry = push(entry, at(p), at(p + 1));
      keep();
    }
  }

  static __m512i push(__m512i entry, __m512i next) {
    const __m512i flip = _mm512_set1_epi32(static_cast<int32_t>(0x80000000u));
    const __m512i last = _mm512_xor_si512(_mm512_slli_epi32(next, 24), flip);
    return _mm512_xor_si512(_mm512_srli_epi32(entry, 8), last);
  }
  static __m512i push(__m512i entry, __m512i next, __m512i after) {
    const __m512i flips = _mm512_set1_epi32(static_cast<int32_t>(0x80800000u));
    const __m512i last = _mm512_xor_si512(_mm512_slli_epi32(next, 16), _mm512_slli_epi32(after, 24));
    return _mm512_xor_si512(_mm512_srli_epi32(entry, 16), _mm512_xor_si512(last, flips));
  }

  template <bool Modest>
  static __m512i round(const Layer& layer, __m512i sums) {
    if constexpr (Modest) return Avx512Vnni::round_modest(sums, layer.scales);
    return Avx512Vnni::round(Avx512Vnni::real(sums, Avx512Vnni::to_float(layer.bias), layer.scales), layer.range);
  }
};

}  // namespace
}  // namespace pmt::host
