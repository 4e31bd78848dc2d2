// Which kernels run on this machine.
#pragma once

#include <string>
#include <vector>

#include "core/kernels/table.hpp"

namespace pmt::host {

// The fastest kernels that this CPU and its operating system support, or those that the environment
// variable PMT_ISA names. Throws std::invalid_argument where it names kernels that cannot run here.
const Kernels& host_kernels();

// Says why a PMT_ISA that is none of those available cannot be had.
std::string isa_problem(const std::string& wanted, const std::vector<std::string>& available);

#ifdef __x86_64__
bool has_avx_vnni();
#elif defined(__aarch64__)
bool has_neon_dot();
#endif

// All that can run here, fastest first; portable_kernels() is the last.
std::vector<const Kernels*> available_kernels();

}  // namespace pmt::host
