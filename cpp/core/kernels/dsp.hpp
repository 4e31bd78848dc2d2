// The instructions of Armv7E-M's DSP extension and its single-precision FPU that the kernels use, one
// function each; on other machines the same function in C++, so that the kernels are tested there.
//
// A pair is two int16 in a word, the first in the low half.
#pragma once

#include <cstdint>

#if defined(__ARM_FEATURE_DSP) && defined(__ARM_FEATURE_SIMD32) && defined(__ARM_FP) && !defined(__aarch64__)
#define PMT_ARM_DSP 1
#endif

namespace pmt::dsp {

using Pair = uint32_t;

inline uint32_t load_word(const void* address) {  // at any alignment
  uint32_t word;
  __builtin_memcpy(&word, address, sizeof word);
  return word;
}

inline void store_word(void* address, uint32_t word) { __builtin_memcpy(address, &word, sizeof word); }

constexpr Pair pair(int32_t first, int32_t second) {
  return (static_cast<uint32_t>(first) & 0xFFFFu) | (static_cast<uint32_t>(second) << 16);
}

constexpr int32_t first(Pair values) { return static_cast<int16_t>(values); }
constexpr int32_t second(Pair values) { return static_cast<int16_t>(values >> 16); }

// The same byte four times.
constexpr uint32_t four_bytes(int32_t value) { return (static_cast<uint32_t>(value) & 0xFFu) * 0x01010101u; }

#ifdef PMT_ARM_DSP

// Bytes 0 and 2, or 1 and 3, as int16.
inline Pair widen_even(uint32_t bytes) {
  Pair result;
  asm("sxtb16 %0, %1" : "=r"(result) : "r"(bytes));
  return result;
}
inline Pair widen_odd(uint32_t bytes) {
  Pair result;
  asm("sxtb16 %0, %1, ror #8" : "=r"(result) : "r"(bytes));
  return result;
}

// offset + bytes 0 and 2, or 1 and 3.
inline Pair add_even(Pair offset, uint32_t bytes) {
  Pair result;
  asm("sxtab16 %0, %1, %2" : "=r"(result) : "r"(offset), "r"(bytes));
  return result;
}
inline Pair add_odd(Pair offset, uint32_t bytes) {
  Pair result;
  asm("sxtab16 %0, %1, %2, ror #8" : "=r"(result) : "r"(offset), "r"(bytes));
  return result;
}

inline Pair firsts(Pair a, Pair b) {
  Pair result;
  asm("pkhbt %0, %1, %2, lsl #16" : "=r"(result) : "r"(a), "r"(b));
  return result;
}
inline Pair seconds(Pair a, Pair b) {
  Pair result;
  asm("pkhtb %0, %1, %2, asr #16" : "=r"(result) : "r"(b), "r"(a));
  return result;
}

// sum + both products.
inline int32_t add_products(Pair a, Pair b, int32_t sum) {
  int32_t result;
  asm("smlad %0, %1, %2, %3" : "=r"(result) : "r"(a), "r"(b), "r"(sum));
  return result;
}
// sum + first of a * second of b, and the other way round.
inline int32_t add_first_second(Pair a, Pair b, int32_t sum) {
  int32_t result;
  asm("smlabt %0, %1, %2, %3" : "=r"(result) : "r"(a), "r"(b), "r"(sum));
  return result;
}
inline int32_t add_second_first(Pair a, Pair b, int32_t sum) {
  int32_t result;
  asm("smlatb %0, %1, %2, %3" : "=r"(result) : "r"(a), "r"(b), "r"(sum));
  return result;
}

// Rounded half to even; saturates.
inline int32_t round_even(float value) {
  int32_t result;
  asm("vcvtr.s32.f32 %0, %1" : "=t"(result) : "t"(value));
  return result;
}

inline int32_t add_saturating(int32_t a, int32_t b) {
  int32_t result;
  asm("qadd %0, %1, %2" : "=r"(result) : "r"(a), "r"(b));
  return result;
}
inline int32_t saturate_int8(int32_t value) {
  int32_t result;
  asm("ssat %0, #8, %1" : "=r"(result) : "r"(value));
  return result;
}

// Byte by byte, as int8.
inline uint32_t add_bytes_saturating(uint32_t a, uint32_t b) {
  uint32_t result;
  asm("qadd8 %0, %1, %2" : "=r"(result) : "r"(a), "r"(b));
  return result;
}
inline uint32_t subtract_bytes(uint32_t a, uint32_t b) {
  uint32_t result;
  asm("usub8 %0, %1, %2" : "=r"(result) : "r"(a), "r"(b) : "cc");
  return result;
}
inline uint32_t larger_bytes(uint32_t a, uint32_t b) {
  uint32_t result;
  asm("ssub8 %0, %1, %2\n\tsel %0, %1, %2" : "=&r"(result) : "r"(a), "r"(b) : "cc");
  return result;
}
inline uint32_t smaller_bytes(uint32_t a, uint32_t b) {
  uint32_t result;
  asm("ssub8 %0, %1, %2\n\tsel %0, %2, %1" : "=&r"(result) : "r"(a), "r"(b) : "cc");
  return result;
}

// Two words at an address that is a multiple of 4, with one instruction.
inline void load_words(const uint32_t* address, uint32_t& first, uint32_t& second) {
  asm("ldrd %0, %1, [%2]" : "=&r"(first), "=&r"(second) : "r"(address), "m"(address[0]), "m"(address[1]));
}

#else

constexpr int32_t byte_of(uint32_t bytes, int index) { return static_cast<int8_t>(bytes >> (8 * index)); }

inline Pair widen_even(uint32_t bytes) { return pair(byte_of(bytes, 0), byte_of(bytes, 2)); }
inline Pair widen_odd(uint32_t bytes) { return pair(byte_of(bytes, 1), byte_of(bytes, 3)); }
inline Pair add_even(Pair offset, uint32_t bytes) {
  return pair(first(offset) + byte_of(bytes, 0), second(offset) + byte_of(bytes, 2));
}
inline Pair add_odd(Pair offset, uint32_t bytes) {
  return pair(first(offset) + byte_of(bytes, 1), second(offset) + byte_of(bytes, 3));
}
inline Pair firsts(Pair a, Pair b) { return pair(first(a), first(b)); }
inline Pair seconds(Pair a, Pair b) { return pair(second(a), second(b)); }

// Sums wrap as the instruction's do: columns after the last pixel may hold anything.
inline int32_t add_wrapping(int32_t a, int32_t b) {
  return static_cast<int32_t>(static_cast<uint32_t>(a) + static_cast<uint32_t>(b));
}
inline int32_t add_products(Pair a, Pair b, int32_t sum) {
  return add_wrapping(add_wrapping(sum, first(a) * first(b)), second(a) * second(b));
}
inline int32_t add_first_second(Pair a, Pair b, int32_t sum) { return add_wrapping(sum, first(a) * second(b)); }
inline int32_t add_second_first(Pair a, Pair b, int32_t sum) { return add_wrapping(sum, second(a) * first(b)); }

inline int32_t round_even(float value) {
  if (value >= 2147483648.0f) return INT32_MAX;
  if (value < -2147483648.0f) return INT32_MIN;
  const float magic = 12582912.0f;
  const bool large = value >= 4194304.0f || value <= -4194304.0f;  // any fraction left is lost in the saturation
  return static_cast<int32_t>(large ? value : (value + magic) - magic);
}

inline int32_t saturated(int64_t value, int64_t low, int64_t high) {
  return static_cast<int32_t>(value < low ? low : (value > high ? high : value));
}
inline int32_t add_saturating(int32_t a, int32_t b) { return saturated(int64_t{a} + b, INT32_MIN, INT32_MAX); }
inline int32_t saturate_int8(int32_t value) { return saturated(value, -128, 127); }

template <typename Function>
uint32_t each_byte(uint32_t a, uint32_t b, Function function) {
  uint32_t result = 0;
  for (int i = 0; i < 4; ++i) {
    result |= (static_cast<uint32_t>(function(byte_of(a, i), byte_of(b, i))) & 0xFFu) << (8 * i);
  }
  return result;
}
inline uint32_t add_bytes_saturating(uint32_t a, uint32_t b) {
  return each_byte(a, b, [](int32_t x, int32_t y) { return saturate_int8(x + y); });
}
inline uint32_t subtract_bytes(uint32_t a, uint32_t b) {
  return each_byte(a, b, [](int32_t x, int32_t y) { return x - y; });
}
inline uint32_t larger_bytes(uint32_t a, uint32_t b) {
  return each_byte(a, b, [](int32_t x, int32_t y) { return x > y ? x : y; });
}
inline uint32_t smaller_bytes(uint32_t a, uint32_t b) {
  return each_byte(a, b, [](int32_t x, int32_t y) { return x < y ? x : y; });
}

inline void load_words(const uint32_t* address, uint32_t& first, uint32_t& second) {
  first = address[0];
  second = address[1];
}

#endif

}  // namespace pmt::dsp
