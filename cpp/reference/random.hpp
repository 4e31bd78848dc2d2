#pragma once

#include <array>
#include <cstdint>

#include "core/zo/perturbation.hpp"
#include "reference/tensors.hpp"

namespace pmt::reference {

// The two generators from their publications, in 32-bit arithmetic only.

// Philox4x32-10 (Salmon et al., SC'11, section 3.3 and table 2).
std::array<uint32_t, 4> philox4x32(std::array<uint32_t, 4> counter, std::array<uint32_t, 2> key);

// XORShift32 (Marsaglia 2003, section 3; the triple 13, 17, 5).
uint32_t xorshift32(uint32_t state);

// The signs of a perturbation, one at a time.

// Sign i of a stream. Philox: bit i of the stream, 128 bits a block, lowest bit of the lowest word
// first. XORShift32: the lowest bit of state i + 1. A set bit is -1.
Vector<int8_t> rademacher(Generator generator, const StreamId& id, int32_t count);

}  // namespace pmt::reference
