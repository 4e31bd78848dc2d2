// The signs of a perturbation, one at a time.
#pragma once

#include "core/zo/perturbation.hpp"
#include "reference/tensors.hpp"

namespace pmt::reference {

// Sign i of a stream. Philox: bit i of the stream, 128 bits a block, lowest bit of the lowest word
// first. XORShift32: the lowest bit of state i + 1. A set bit is -1.
Vector<int8_t> rademacher(Generator generator, const StreamId& id, int32_t count);

}  // namespace pmt::reference
