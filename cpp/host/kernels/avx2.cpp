#include "host/kernels/tables.hpp"

#ifdef PMT_X86_KERNELS

#include <immintrin.h>

#include <cstddef>
#include <cstring>

#include "core/kernels/portable.hpp"

#pragma GCC push_options
#pragma GCC target("avx2")
// The order matters: what follows is compiled for AVX2, and built on what stands before it.
// clang-format off
#include "host/kernels/isa_avx2.hpp"
#include "host/kernels/gemm_tile.hpp"
#include "host/kernels/gemm_pack.hpp"
#include "host/kernels/gemm.hpp"
// clang-format on
#pragma GCC pop_options

namespace pmt::host {
namespace {

int64_t depthwise_bytes(const OpShape& shape) {
  return static_cast<int64_t>(shape.out.channels) * shape.window.kernel_h * shape.window.kernel_w;
}

void pack_depthwise(const PackArgs& args) {
  const auto count = static_cast<int32_t>(depthwise_bytes(args.shape));
  auto* packed = static_cast<int8_t*>(args.packed);
  if (args.signs == nullptr) {
    std::memcpy(packed, args.weights, static_cast<size_t>(count));
  } else {
    portable::perturb(args.weights, args.signs, count, args.mu, -127, 127, packed);
  }
}

void depthwise_conv2d(const LinearArgs& args) {
  LinearArgs plain = args;
  plain.weights = static_cast<const int8_t*>(args.packed);
  portable::depthwise_conv2d(plain);
}

int64_t packed_bytes(const OpShape& shape) {
  return shape.kind == OpKind::depthwise_conv2d ? depthwise_bytes(shape) : GemmPacking<Avx2>::bytes(shape);
}

void pack(const PackArgs& args) {
  if (args.shape.kind == OpKind::depthwise_conv2d) {
    pack_depthwise(args);
  } else {
    GemmPacking<Avx2>::pack(args);
  }
}

int32_t scratch_bytes(const OpShape& shape) {
  switch (shape.kind) {
    case OpKind::conv2d:
    case OpKind::fully_connected: return Gemm<Avx2>::scratch_bytes(shape);
    default: return portable::scratch_bytes(shape);
  }
}

}  // namespace

const Kernels& avx2_kernels() {
  static constexpr Kernels table = {"avx2",
                                    packed_bytes,
                                    pack,
                                    16,
                                    64,
                                    Gemm<Avx2>::conv2d,
                                    depthwise_conv2d,
                                    Gemm<Avx2>::fully_connected,
                                    Gemm<Avx2>::logits,
                                    portable::add,
                                    portable::average_pool,
                                    portable::max_pool,
                                    portable::mean,
                                    scratch_bytes,
                                    portable::philox_signs,
                                    portable::perturb,
                                    portable::accumulate_signs,
                                    portable::outer_product,
                                    1};
  return table;
}

}  // namespace pmt::host

#endif
