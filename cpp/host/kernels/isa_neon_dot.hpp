// Included after <arm_neon.h> and <cstring>. Armv8.2 with the dot-product extension: four lanes of int32, groups of
// four int8 by sdot.
#pragma once

namespace pmt::host {
namespace {

struct NeonDot {
  static constexpr const char* name = "neon_dot";
  static constexpr int32_t lanes = 4;
  static constexpr bool stores_parts = false;
  static constexpr int32_t group = 4;  // taps that one dot() adds to a lane
  // Activations keep their zero point: the sums start at -zero_point * sum(weights).
  static constexpr bool compensates = true;
  static constexpr bool dots_in_pairs = false;
  using Activation = int8_t;
  using Weight = int8_t;
  using Int32 = int32x4_t;
  using Float = float32x4_t;
  using Bytes = int8x16_t;

  // Register tiles: at most `widest` vectors of channels, this many positions.
  static constexpr int32_t widest = 4;
  static constexpr int32_t panel_width(int32_t) { return widest; }
  static constexpr int32_t tile_rows(int32_t width) { return width == 4 ? 6 : 8; }
  // Positions that count as rows a constant step apart: fewer, and the rest after the last whole tile costs more.
  static constexpr int32_t shortest_run = 64;

  static Int32 zero() { return vdupq_n_s32(0); }
  static Int32 load(const void* from) { return vld1q_s32(static_cast<const int32_t*>(from)); }
  static void store(void* to, Int32 value) { vst1q_s32(static_cast<int32_t*>(to), value); }
  static Int32 broadcast(const void* from) { return vld1q_dup_s32(static_cast<const int32_t*>(from)); }
  static Int32 add(Int32 a, Int32 b) { return vaddq_s32(a, b); }
  static Int32 multiply(Int32 a, int32_t b) { return vmulq_n_s32(a, b); }
  static Int32 dot(Int32 sums, Int32 activations, Int32 weights) {
    return vdotq_s32(sums, vreinterpretq_s8_s32(activations), vreinterpretq_s8_s32(weights));
  }

  static Activation stored(int32_t value, int32_t) { return static_cast<Activation>(value); }
  static void convert(const int8_t* values, int32_t count, int32_t, Activation* converted) {
    std::memcpy(converted, values, static_cast<size_t>(count));
  }

  static Float load_floats(const float* from) { return vld1q_f32(from); }
  static void store_floats(float* to, Float value) { vst1q_f32(to, value); }
  static Float to_float(Int32 value) { return vcvtq_f32_s32(value); }
  static Float real(Int32 sums, Float bias, Float scale) {
    return vmulq_f32(vaddq_f32(vcvtq_f32_s32(sums), bias), scale);
  }

  struct Range {
    int16x8_t zero_point;
    int8x16_t low, high;
  };
  static Range range(int32_t zero_point, int32_t low, int32_t high) {
    return {vdupq_n_s16(static_cast<int16_t>(zero_point)), vdupq_n_s8(static_cast<int8_t>(low)),
            vdupq_n_s8(static_cast<int8_t>(high))};
  }
  static Int32 round(Float value, const Range&) { return vcvtnq_s32_f32(value); }
  // For products that are known to fit int32 (requantize_bounds.hpp).
  static Int32 round_modest(Int32 sums, Float scale) { return vcvtnq_s32_f32(vmulq_f32(to_float(sums), scale)); }
  template <bool Clamps>
  static Bytes narrow(const Int32 (&rounded)[4], const Range& range) {
    const int16x8_t first = vcombine_s16(vqmovn_s32(rounded[0]), vqmovn_s32(rounded[1]));
    const int16x8_t second = vcombine_s16(vqmovn_s32(rounded[2]), vqmovn_s32(rounded[3]));
    const int8x16_t bytes =
        vcombine_s8(vqmovn_s16(vqaddq_s16(first, range.zero_point)), vqmovn_s16(vqaddq_s16(second, range.zero_point)));
    return Clamps ? vminq_s8(vmaxq_s8(bytes, range.low), range.high) : bytes;
  }
  // Vectors `index` .. `index + count - 1` of four.
  static void store_outputs(int8_t* to, Bytes outputs, int32_t index, int32_t count) {
    int8_t bytes[16];
    vst1q_s8(bytes, outputs);
    std::memcpy(to, bytes + 4 * index, static_cast<size_t>(4 * count));
  }

  using Taps = int8x16_t;
  static Taps no_taps() { return vdupq_n_s8(0); }
  static Taps load_taps(const int8_t* from) { return vld1q_s8(from); }
  // The first `count` taps, zeros after them.
  static Taps keep_taps(Taps taps, int32_t count) {
    static constexpr int8_t index[16] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
    const uint8x16_t kept = vcltq_s8(vld1q_s8(index), vdupq_n_s8(static_cast<int8_t>(count)));
    return vandq_s8(taps, vreinterpretq_s8_u8(kept));
  }
  // clamp(weights + mu * signs, -127, 127); 0 <= mu <= 127.
  static Taps perturb_taps(Taps weights, Taps signs, int32_t mu) {
    const int8x16_t difference = vmulq_s8(signs, vdupq_n_s8(static_cast<int8_t>(mu)));
    return vmaxq_s8(vqaddq_s8(weights, difference), vdupq_n_s8(-127));
  }
  // Four channels of 16 taps become 16 / group groups, `stride` bytes apart.
  static constexpr int32_t pack_channels = 4;
  static void store_groups(const Taps (&channels)[pack_channels], int32_t groups, int32_t stride, uint8_t* packed) {
    int32_t taps[pack_channels][4];
    for (int32_t c = 0; c < pack_channels; ++c) vst1q_s32(taps[c], vreinterpretq_s32_s8(channels[c]));
    for (int32_t g = 0; g < groups; ++g) {
      for (int32_t c = 0; c < pack_channels; ++c) std::memcpy(packed + g * stride + 4 * c, &taps[c][g], 4);
    }
  }
};

}  // namespace
}  // namespace pmt::host
