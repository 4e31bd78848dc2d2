// AVX-VNNI: vpdpbusd on eight lanes of int32, for processors without AVX-512.
#pragma once

#include "host/kernels/requantize_avx2.hpp"
#include "host/kernels/x86.hpp"

namespace pmt::host {
namespace {

struct AvxVnni : RequantizeAvx2, VnniX86 {
  static constexpr const char* name = "avx_vnni";

  // Register tiles: at most `widest` vectors of channels, this many positions.
  static constexpr int32_t widest = 2;
  static constexpr int32_t panel_width(int32_t) { return widest; }
  static constexpr int32_t tile_rows(int32_t width) { return width == 1 ? 8 : 6; }
  // Positions that count as rows a constant step apart: fewer, and the rest after the last whole tile costs more.
  static constexpr int32_t shortest_run = 64;

  static Int32 dot(Int32 sums, Int32 activations, Int32 weights) {
    return _mm256_dpbusd_avx_epi32(sums, activations, weights);
  }
};

}  // namespace
}  // namespace pmt::host
