// The numeric primitives of the core, which has no libm. The result is the same bits on every target.
#pragma once

#include <cstdint>

namespace pmt {

constexpr int32_t smaller(int32_t a, int32_t b) { return a < b ? a : b; }
constexpr int32_t larger(int32_t a, int32_t b) { return a < b ? b : a; }

constexpr int32_t clamp(int32_t value, int32_t low, int32_t high) {
  return value < low ? low : (value > high ? high : value);
}

// The nearest int32.
constexpr int32_t saturated(int64_t value) {
  return static_cast<int32_t>(value > INT32_MAX ? INT32_MAX : (value < INT32_MIN ? INT32_MIN : value));
}

constexpr float absolute(float value) { return value < 0.0f ? -value : value; }

constexpr float clamp(float value, float low, float high) { return value < low ? low : (value > high ? high : value); }

// Round half to even. Adding 1.5 * 2^23 leaves no fraction bits, so the addition itself rounds.
// |value| must be below 2^22.
inline int32_t round_half_even(float value) {
  const float magic = 12582912.0f;
  return static_cast<int32_t>((value + magic) - magic);
}

// As round_half_even for any finite value; the result saturates at +-2^21, far outside int8.
inline int32_t round_saturating(float value) { return round_half_even(clamp(value, -2097152.0f, 2097152.0f)); }

// Half to even as far as floats have fractions; beyond 2^22 those that matter are whole. Saturates at
// +-2^30.
inline int32_t round_bias(float value) {
  if (value > -4194304.0f && value < 4194304.0f) return round_half_even(value);
  return static_cast<int32_t>(clamp(value, -1073741824.0f, 1073741824.0f));
}

// int64 -> float, round half to even, without a library call (its rounding differs by target). One copy, for size.
__attribute__((noinline)) inline float float_of_int64(int64_t value) {
  const bool negative = value < 0;
  uint64_t magnitude = negative ? 0u - static_cast<uint64_t>(value) : static_cast<uint64_t>(value);
  float scale = 1.0f;
  while (magnitude >> 30) {  // keep a sticky bit so that ties are still seen
    magnitude = (magnitude >> 1) | (magnitude & 1u);
    scale *= 2.0f;
  }
  const float result = static_cast<float>(static_cast<int32_t>(magnitude)) * scale;
  return negative ? -result : result;
}

// int32 takes one instruction; int64 goes through the one copy above.
template <typename Integer>
float to_float(Integer value) {
  static_assert(static_cast<Integer>(-1) < 0, "unsigned values are not supported");
  if constexpr (sizeof(Integer) > sizeof(int32_t)) return float_of_int64(value);
  return static_cast<float>(static_cast<int32_t>(value));
}

// Division that rounds to the nearest, halves away from zero. divisor > 0.
constexpr int64_t divide_rounded(int64_t value, int64_t divisor) {
  return value >= 0 ? (value + divisor / 2) / divisor : -((-value + divisor / 2) / divisor);
}

constexpr int32_t round_up(int32_t value, int32_t multiple) { return (value + multiple - 1) / multiple * multiple; }

inline bool is_finite(float value) { return value - value == 0.0f; }

}  // namespace pmt
