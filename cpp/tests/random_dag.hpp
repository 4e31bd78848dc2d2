// Random networks without a main line: any op reads any earlier tensor.
#pragma once

#include "tests/aligned_bytes.hpp"
#include "tests/random_source.hpp"

namespace pmt::tests {

// Convolutions, additions and concatenations over up to `ops` ops, then a head. Tensors have no, one or several
// readers, far apart; an addition or a concatenation may read one tensor twice.
AlignedBytes random_dag(RandomSource& random, int32_t ops);

}  // namespace pmt::tests
