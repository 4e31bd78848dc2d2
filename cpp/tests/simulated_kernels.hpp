// Kernels of instructions that this machine may lack, simulated.
#pragma once

#include <vector>

#include "core/kernels/table.hpp"

namespace pmt::tests {

const Kernels& simulated_avx_vnni_kernels();
const Kernels& simulated_avx512_vnni_kernels();

// All that run on this machine, and the simulated ones.
std::vector<const Kernels*> tested_kernels();

}  // namespace pmt::tests
