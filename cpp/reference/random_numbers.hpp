// The two generators from their publications, in 32-bit arithmetic only.
#pragma once

#include <array>
#include <cstdint>

namespace pmt::reference {

// Philox4x32-10 (Salmon et al., SC'11, section 3.3 and table 2).
std::array<uint32_t, 4> philox4x32(std::array<uint32_t, 4> counter, std::array<uint32_t, 2> key);

// XORShift32 (Marsaglia 2003, section 3; the triple 13, 17, 5).
uint32_t xorshift32(uint32_t state);

}  // namespace pmt::reference
