#include "host/kernels/tables.hpp"

#ifdef PMT_X86_KERNELS

#ifndef __clang__  // GCC 12 warns of its own _mm512_undefined_*()
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
#include <immintrin.h>

#include <cstring>
#include <utility>

// Before the target: what these define is compiled for the baseline.
#include "core/kernels/portable/portable.hpp"
#include "host/kernels/depthwise_quads.hpp"
#include "host/kernels/gemm_block.hpp"
#include "host/kernels/requantize_bounds.hpp"
#include "host/kernels/target.hpp"

PMT_BEGIN_TARGET("avx2,avx512f,avx512bw,avx512vl,avx512vnni")
#include "host/kernels/depthwise_avx512_vnni.hpp"
#include "host/kernels/table_x86.hpp"

namespace pmt::host {
namespace {

Kernels make_table() { return LayerKernels<Avx512Vnni, DepthwiseAvx512Vnni>::in(TableX86::without_layers()); }

}  // namespace
}  // namespace pmt::host
PMT_END_TARGET

const pmt::Kernels& pmt::host::avx512_vnni_kernels() {
  static const Kernels table = make_table();
  return table;
}

#endif
