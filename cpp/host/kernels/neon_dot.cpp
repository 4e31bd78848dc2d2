#include "host/kernels/tables.hpp"

#ifdef PMT_NEON_KERNELS

#include <arm_neon.h>

#include <cstring>

// Before the target: what these define is compiled for the baseline.
#include "core/kernels/portable/portable.hpp"
#include "host/kernels/gemm_block.hpp"
#include "host/kernels/no_kernel.hpp"
#include "host/kernels/requantize_bounds.hpp"
#include "host/kernels/target.hpp"

#ifdef __clang__
PMT_BEGIN_TARGET("dotprod")
#else
PMT_BEGIN_TARGET("arch=armv8.2-a+dotprod")
#endif
#include "host/kernels/isa_neon_dot.hpp"
#include "host/kernels/layer_kernels.hpp"

namespace pmt::host {
namespace {

Kernels make_table() { return LayerKernels<NeonDot, NoKernel>::in(portable_kernels()); }

}  // namespace
}  // namespace pmt::host
PMT_END_TARGET

const pmt::Kernels& pmt::host::neon_dot_kernels() {
  static const Kernels table = make_table();
  return table;
}

#endif
