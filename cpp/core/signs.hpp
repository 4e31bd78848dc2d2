// 32 random bits -> 32 signs, least significant bit first; bit 0 gives +1, bit 1 gives -1, as in the
// paper's rademacher().
#pragma once

#include <cstdint>

namespace pmt {

inline uint32_t four_signs(uint32_t bits) {
  const uint32_t spread = ((bits & 15u) * 0x00204081u) & 0x01010101u;
  return 0x01010101u ^ (spread * 0xFEu);
}

inline void store_signs(uint32_t word, int8_t* signs) {
  for (int i = 0; i < 8; ++i) {
    const uint32_t four = four_signs(word >> (4 * i));
    __builtin_memcpy(signs + 4 * i, &four, 4);
  }
}

}  // namespace pmt
