// 32 random bits -> 32 signs, least significant bit first; bit 0 gives +1, bit 1 gives -1, as in the
// paper's rademacher().
#pragma once

#include <cstdint>

#include "core/kernels/dsp.hpp"

namespace pmt {

inline uint32_t four_signs(uint32_t bits) {
  const uint32_t spread = ((bits & 15u) * 0x00204081u) & 0x01010101u;
  return 0x01010101u ^ (spread * 0xFEu);
}

#ifdef PMT_ARM_DSP

// SEL takes each byte from one word or the other as the four flags GE say: four random bits, put there.
inline void store_signs(uint32_t word, int8_t* signs) {
#define PMT_FOUR_SIGNS(bits, offset)   \
  "msr APSR_g, " bits                  \
  "\n\t"                               \
  "sel %[four], %[minus], %[plus]\n\t" \
  "str %[four], [%[signs], #" offset "]\n\t"
#define PMT_ROTATED_SIGNS(rotation, offset) "ror %[four], %[word], #" rotation "\n\t" PMT_FOUR_SIGNS("%[four]", offset)
  uint32_t four;
  asm volatile(PMT_ROTATED_SIGNS("16", "0") PMT_ROTATED_SIGNS("20", "4") PMT_ROTATED_SIGNS("24", "8")
                   PMT_ROTATED_SIGNS("28", "12") PMT_FOUR_SIGNS("%[word]", "16") PMT_ROTATED_SIGNS("4", "20")
                       PMT_ROTATED_SIGNS("8", "24") PMT_ROTATED_SIGNS("12", "28")
               : [four] "=&r"(four)
               : [word] "r"(word), [signs] "r"(signs), [minus] "r"(0xFFFFFFFFu), [plus] "r"(0x01010101u)
               : "cc", "memory");
#undef PMT_ROTATED_SIGNS
#undef PMT_FOUR_SIGNS
}

#else

inline void store_signs(uint32_t word, int8_t* signs) {
  for (int i = 0; i < 8; ++i) {
    const uint32_t four = four_signs(word >> (4 * i));
    __builtin_memcpy(signs + 4 * i, &four, 4);
  }
}

#endif

}  // namespace pmt
