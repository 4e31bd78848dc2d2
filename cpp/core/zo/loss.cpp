#include "core/zo/loss.hpp"

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

float sum_of_exponentials(const float* logits, int32_t classes, float largest) {
  float sum = 0.0f;
  for (int32_t c = 0; c < classes; ++c) sum += exp_negative(logits[c] - largest);
  return sum;
}

// Logits with a NaN, or infinity as the largest, have no softmax; else the largest logit alone gives 1.
bool has_softmax(float sum) { return sum >= 1.0f; }

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

int32_t arg_max(const float* logits, int32_t classes) {
  int32_t best = 0;
  for (int32_t c = 1; c < classes; ++c) {
    if (logits[c] > logits[best]) best = c;
  }
  return best;
}

int32_t cross_entropy(const float* logits, int32_t classes, int32_t label) {
  const float largest = logits[arg_max(logits, classes)];
  const float sum = sum_of_exponentials(logits, classes, largest);
  if (!has_softmax(sum)) return largest_loss;
  const float loss = log_at_least_one(sum) - (logits[label] - largest);
  return static_cast<int32_t>(clamp(loss, 0.0f, 1024.0f) * loss_one + 0.5f);
}

void cross_entropy_gradient(const float* logits, int32_t classes, int32_t label, int32_t* gradient) {
  const float largest = logits[arg_max(logits, classes)];
  const float sum = sum_of_exponentials(logits, classes, largest);
  for (int32_t c = 0; c < classes; ++c) {
    gradient[c] = 0;
    if (!has_softmax(sum)) continue;
    const float probability = exp_negative(logits[c] - largest) / sum;
    const auto fixed = static_cast<int32_t>(probability * loss_one + 0.5f);
    gradient[c] = c == label ? fixed - (1 << loss_fraction_bits) : fixed;
  }
}

}  // namespace pmt
