// A kernel table over isa_emulated.hpp.
#pragma once

#include <vector>

#include "core/kernels.hpp"

namespace pmt::tests {

const Kernels& emulated_kernels();

// All that run on this machine, and the emulated ones.
std::vector<const Kernels*> tested_kernels();

}  // namespace pmt::tests
