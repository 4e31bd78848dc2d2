// The data layout of the VNNI instructions in plain C++: 16 lanes, groups of four uint8 activations,
// sums that start with a compensation. Lets any machine test the templates over it.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>

#include "core/arithmetic.hpp"

namespace pmt::tests {

struct Emulated {
  static constexpr const char* name = "emulated";
  static constexpr int32_t lanes = 16;
  static constexpr int32_t group = 4;
  static constexpr bool compensates = true;
  using Activation = uint8_t;
  using Weight = int8_t;
  static constexpr int32_t widest = 4;
  static constexpr int32_t tile_rows(int32_t width) { return width == 4 ? 6 : (width == 3 ? 8 : 12); }

  using Int32 = std::array<int32_t, 16>;
  using Float = std::array<float, 16>;
  using Bytes = std::array<int8_t, 64>;
  struct Range {
    int32_t zero_point, low, high;
  };

  static Int32 zero() { return {}; }
  static Int32 load(const void* from) {
    Int32 value;
    std::memcpy(value.data(), from, sizeof value);
    return value;
  }
  static void store(void* to, const Int32& value) { std::memcpy(to, value.data(), sizeof value); }
  static Int32 broadcast(const void* from) {
    int32_t value;
    std::memcpy(&value, from, sizeof value);
    Int32 all;
    all.fill(value);
    return all;
  }
  static Int32 multiply(const Int32& a, int32_t b) {
    Int32 product;
    for (size_t i = 0; i < 16; ++i) {
      product[i] = static_cast<int32_t>(static_cast<uint32_t>(a[i]) * static_cast<uint32_t>(b));
    }
    return product;
  }
  static Int32 dot(const Int32& sums, const Int32& activations, const Int32& weights) {
    Int32 result = sums;
    for (size_t i = 0; i < 16; ++i) {
      uint8_t a[4];
      int8_t w[4];
      std::memcpy(a, &activations[i], 4);
      std::memcpy(w, &weights[i], 4);
      auto sum = static_cast<uint32_t>(sums[i]);
      for (int k = 0; k < 4; ++k) sum += static_cast<uint32_t>(a[k] * w[k]);
      result[i] = static_cast<int32_t>(sum);
    }
    return result;
  }

  static Activation stored(int32_t value, int32_t) { return static_cast<Activation>(value + 128); }
  static void convert(const int8_t* values, int32_t count, int32_t zero_point, Activation* converted) {
    for (int32_t i = 0; i < count; ++i) converted[i] = stored(values[i], zero_point);
  }

  static Float load_floats(const float* from) {
    Float value;
    std::memcpy(value.data(), from, sizeof value);
    return value;
  }
  static void store_floats(float* to, const Float& value) { std::memcpy(to, value.data(), sizeof value); }
  static Float to_float(const Int32& value) {
    Float result;
    for (size_t i = 0; i < 16; ++i) result[i] = static_cast<float>(value[i]);
    return result;
  }
  static Float real(const Int32& sums, const Float& bias, const Float& scale) {
    Float result;
    for (size_t i = 0; i < 16; ++i) result[i] = (static_cast<float>(sums[i]) + bias[i]) * scale[i];
    return result;
  }
  static Range range(int32_t zero_point, int32_t low, int32_t high) { return {zero_point, low, high}; }
  static Int32 round(const Float& value, const Range&) {
    Int32 result;
    for (size_t i = 0; i < 16; ++i) result[i] = round_saturating(value[i]);
    return result;
  }
  static Bytes narrow(const Int32 (&rounded)[4], const Range& range) {
    Bytes bytes;
    for (size_t i = 0; i < 64; ++i) {
      bytes[i] = static_cast<int8_t>(clamp(rounded[i / 16][i % 16] + range.zero_point, range.low, range.high));
    }
    return bytes;
  }
  static void store_outputs(int8_t* to, const Bytes& outputs, int32_t index, int32_t count) {
    std::memcpy(to, outputs.data() + 16 * index, static_cast<size_t>(16 * count));
  }

  using Taps = std::array<int8_t, 16>;
  static constexpr int32_t pack_channels = 4;
  static Taps no_taps() { return {}; }
  static Taps load_taps(const int8_t* from) {
    Taps taps;
    std::memcpy(taps.data(), from, sizeof taps);
    return taps;
  }
  static Taps keep_taps(const Taps& taps, int32_t count) {
    Taps kept = {};
    std::memcpy(kept.data(), taps.data(), static_cast<size_t>(count));
    return kept;
  }
  static Taps perturb_taps(const Taps& weights, const Taps& signs, int32_t mu) {
    Taps sums;
    for (size_t i = 0; i < 16; ++i) sums[i] = static_cast<int8_t>(clamp(weights[i] + mu * signs[i], -127, 127));
    return sums;
  }
  static void store_groups(const Taps (&channels)[4], int32_t groups, int32_t stride, uint8_t* packed) {
    for (int32_t g = 0; g < groups; ++g) {
      for (int32_t c = 0; c < 4; ++c) std::memcpy(packed + g * stride + 4 * c, channels[c].data() + 4 * g, 4);
    }
  }
};

}  // namespace pmt::tests
