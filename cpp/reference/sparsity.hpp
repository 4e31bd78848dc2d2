// Random gradient sparsity.
#pragma once

#include <vector>

#include "core/base/random.hpp"

namespace pmt::reference {

// A random order of 0 .. count-1: four rounds of an odd multiple, an offset and a shifted XOR modulo
// the next power of two (at least 2), applied again while the result is not below count.
std::vector<int32_t> random_order(const StreamId& id, int32_t count);

}  // namespace pmt::reference
