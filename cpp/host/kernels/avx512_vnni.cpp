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

#ifdef __clang__
#pragma clang attribute push(__attribute__((target("avx2,avx512f,avx512bw,avx512vl,avx512vnni"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx2,avx512f,avx512bw,avx512vl,avx512vnni")
#endif
#include "host/kernels/depthwise_avx512_vnni.hpp"
#include "host/kernels/table_x86.hpp"

namespace pmt::host {
namespace {

Kernels make_table() { return LayerKernels<Avx512Vnni, DepthwiseAvx512Vnni>::in(TableX86::without_layers()); }

}  // namespace
}  // namespace pmt::host
#ifdef __clang__
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif

const pmt::Kernels& pmt::host::avx512_vnni_kernels() {
  static const Kernels table = make_table();
  return table;
}

#endif
