#include "host/kernels/tables.hpp"

#ifdef PMT_X86_KERNELS

#include <immintrin.h>

#include <cstring>
#include <utility>

// Before the target: what these define is compiled for the baseline.
#include "core/kernels/portable/portable.hpp"
#include "host/kernels/gemm_block.hpp"
#include "host/kernels/requantize_bounds.hpp"
#include "host/kernels/target.hpp"

PMT_BEGIN_TARGET("avx2")
#include "host/kernels/isa_avx2.hpp"
#include "host/kernels/table_x86.hpp"
#include "host/kernels/winograd_avx2.hpp"

namespace pmt::host {
namespace {

Kernels make_table() {
  return LayerKernels<Avx2, Depthwise<DepthwiseAvx2>, WinogradAvx2>::in(TableX86::without_layers());
}

}  // namespace
}  // namespace pmt::host
PMT_END_TARGET

const pmt::Kernels& pmt::host::avx2_kernels() {
  static const Kernels table = make_table();
  return table;
}

#endif
