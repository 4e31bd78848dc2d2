// The accelerated kernel tables. Each exists on its architecture only, and may be used only where
// the CPU has the instructions its name says.
#pragma once

#include "core/kernels/table.hpp"

#if defined(__x86_64__) && defined(__GNUC__)
#define PMT_X86_KERNELS 1
#if __has_include(<avxvnniintrin.h>)
#define PMT_AVX_VNNI_KERNELS 1
#endif
#endif

#if defined(__aarch64__) && defined(__GNUC__)
#define PMT_NEON_KERNELS 1
#endif

namespace pmt::host {

#ifdef PMT_X86_KERNELS
const Kernels& avx2_kernels();
const Kernels& avx512_vnni_kernels();
#endif
#ifdef PMT_AVX_VNNI_KERNELS
const Kernels& avx_vnni_kernels();
#endif
#ifdef PMT_NEON_KERNELS
const Kernels& neon_dot_kernels();
#endif

}  // namespace pmt::host
