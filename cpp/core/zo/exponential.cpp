#include "core/zo/exponential.hpp"

#include <cstdint>

#include "core/base/arithmetic.hpp"

namespace pmt {
namespace {

constexpr float ln2_high = 0.693359375f;  // few bits, so that n * ln2_high is exact
constexpr float ln2_low = -2.12194440e-4f;

float from_bits(uint32_t bits) {
  float value;
  __builtin_memcpy(&value, &bits, sizeof value);
  return value;
}

uint32_t to_bits(float value) {
  uint32_t bits;
  __builtin_memcpy(&bits, &value, sizeof bits);
  return bits;
}

}  // namespace

float exp_negative(float x) {
  if (x < -87.0f) return 0.0f;
  if (x != x) return x;
  const int32_t n = round_half_even(x * 1.44269504f);
  const float whole = static_cast<float>(n);
  const float r = (x - whole * ln2_high) - whole * ln2_low;
  float p = 1.0f / 720.0f;  // Taylor series of e^r, |r| <= 0.35
  p = p * r + 1.0f / 120.0f;
  p = p * r + 1.0f / 24.0f;
  p = p * r + 1.0f / 6.0f;
  p = p * r + 0.5f;
  p = p * r + 1.0f;
  p = p * r + 1.0f;
  return p * from_bits(static_cast<uint32_t>(n + 127) << 23);
}

float log_at_least_one(float x) {
  const uint32_t bits = to_bits(x);
  int32_t exponent = static_cast<int32_t>(bits >> 23) - 127;
  float mantissa = from_bits((bits & 0x007FFFFFu) | 0x3F800000u);
  if (mantissa > 1.41421356f) {
    mantissa *= 0.5f;
    ++exponent;
  }
  const float s = (mantissa - 1.0f) / (mantissa + 1.0f);  // log m = 2 atanh s, |s| <= 0.172
  const float z = s * s;
  float p = 1.0f / 9.0f;
  p = p * z + 1.0f / 7.0f;
  p = p * z + 1.0f / 5.0f;
  p = p * z + 1.0f / 3.0f;
  const float log_mantissa = 2.0f * s + 2.0f * s * z * p;
  const float whole = static_cast<float>(exponent);
  return whole * ln2_high + (log_mantissa + whole * ln2_low);
}

float softplus(float x) {
  const float tail = log_at_least_one(1.0f + exp_negative(x > 0.0f ? -x : x));
  return x > 0.0f ? x + tail : tail;
}

float sigmoid(float x) {
  const float e = exp_negative(x > 0.0f ? -x : x);
  return (x > 0.0f ? 1.0f : e) / (1.0f + e);
}

}  // namespace pmt
