// The VNNI tables' products on any machine: SIMDe's definitions of the instructions stand in for the
// processor's.
#define PMT_SIMULATED_INSTRUCTIONS
#define SIMDE_ENABLE_NATIVE_ALIASES
#define SIMDE_NO_INLINE  // an instruction is long: inlined thousands of times, it takes the compiler a minute
#include <simde/x86/avx512.h>

#include <climits>
#include <cmath>
#include <cstring>

namespace {

// Functions that SIMDe 0.7 lacks.
simde__m512 simulated_cvtepi32_ps(simde__m512i values) {
  int32_t from[16];
  float to[16];
  std::memcpy(from, &values, sizeof from);
  for (int i = 0; i < 16; ++i) to[i] = static_cast<float>(from[i]);
  return simde_mm512_loadu_ps(to);
}

simde__m512i simulated_cvtps_epi32(simde__m512 values) {
  float from[16];
  int32_t to[16];
  std::memcpy(from, &values, sizeof from);
  for (int i = 0; i < 16; ++i) {
    const double rounded = std::nearbyint(static_cast<double>(from[i]));
    to[i] = rounded >= -2147483648.0 && rounded <= 2147483647.0 ? static_cast<int32_t>(rounded) : INT_MIN;
  }
  return simde_mm512_loadu_si512(to);
}

void simulated_mask_storeu_epi8(void* to, simde__mmask16 mask, simde__m128i bytes) {
  uint8_t from[16];
  std::memcpy(from, &bytes, sizeof from);
  for (int i = 0; i < 16; ++i) {
    if ((mask >> i & 1) != 0) static_cast<uint8_t*>(to)[i] = from[i];
  }
}

}  // namespace

#define __mmask16 simde__mmask16
#define _mm_mask_storeu_epi8 simulated_mask_storeu_epi8
#define _mm512_cvtepi32_ps simulated_cvtepi32_ps
#define _mm512_cvtps_epi32 simulated_cvtps_epi32
#define _mm256_dpbusd_avx_epi32 simde_mm256_dpbusd_epi32

#include "host/kernels/depthwise_avx512_vnni.hpp"
#include "host/kernels/isa_avx_vnni.hpp"
#include "host/kernels/kernel_choice.hpp"
#include "host/kernels/layer_kernels.hpp"
#include "host/kernels/no_kernel.hpp"
#include "tests/simulated_kernels.hpp"

namespace pmt::tests {
namespace {

template <typename Isa, typename Depthwise>
Kernels simulated(const char* name) {
  Kernels table = host::LayerKernels<Isa, Depthwise>::in(portable_kernels());
  table.name = name;
  return table;
}

}  // namespace

std::vector<const Kernels*> tested_kernels() {
  std::vector<const Kernels*> kernels = host::available_kernels();
  kernels.push_back(&arm_dsp_kernels());
  kernels.push_back(&simulated_avx_vnni_kernels());
  kernels.push_back(&simulated_avx512_vnni_kernels());
  return kernels;
}

const Kernels& simulated_avx512_vnni_kernels() {
  static const Kernels table = simulated<host::Avx512Vnni, host::DepthwiseAvx512Vnni>("simulated avx512_vnni");
  return table;
}

const Kernels& simulated_avx_vnni_kernels() {
  static const Kernels table = simulated<host::AvxVnni, host::NoKernel>("simulated avx_vnni");
  return table;
}

}  // namespace pmt::tests
