#include "host/kernels/tables.hpp"

#ifdef PMT_X86_KERNELS

#include <immintrin.h>

#include <cstring>

#include "core/kernels/portable.hpp"
#include "host/kernels/gemm_block.hpp"

#pragma GCC push_options
#pragma GCC target("avx2")
#include "host/kernels/add_avx2.hpp"
#include "host/kernels/gemm.hpp"
#include "host/kernels/isa_avx2.hpp"
#include "host/kernels/outer_product_avx2.hpp"
#include "host/kernels/pack.hpp"
#include "host/kernels/pooling_avx2.hpp"
#include "host/kernels/signs_avx2.hpp"
#pragma GCC pop_options

namespace pmt::host {
namespace {

bool is_depthwise(const OpShape& shape) { return shape.kind == OpKind::depthwise_conv2d; }

int64_t depthwise_bytes(const OpShape& shape) {
  return static_cast<int64_t>(shape.kernel_h) * shape.kernel_w * shape.out.channels;
}

void pack_depthwise(const PackArgs& args) {
  const int64_t count = depthwise_bytes(args.shape);
  auto* packed = static_cast<int8_t*>(args.packed);
  if (args.signs == nullptr) {
    std::memcpy(packed, args.weights, static_cast<size_t>(count));
  } else {
    SignsAvx2::perturb(args.weights, args.signs, static_cast<int32_t>(count), args.mu, -127, 127, packed);
  }
}

void depthwise_conv2d(const LinearArgs& args) {
  LinearArgs plain = args;
  plain.weights = static_cast<const int8_t*>(args.packed);
  portable::depthwise_conv2d(plain);
}

int64_t packed_bytes(const OpShape& shape) {
  return is_depthwise(shape) ? depthwise_bytes(shape) : GemmPacking<Avx2>::bytes(shape);
}

void pack(const PackArgs& args) { is_depthwise(args.shape) ? pack_depthwise(args) : GemmPacking<Avx2>::pack(args); }

int32_t scratch_bytes(const OpShape& shape) {
  switch (shape.kind) {
    case OpKind::conv2d:
    case OpKind::fully_connected: return Gemm<Avx2>::scratch_bytes(shape);
    default: return portable::scratch_bytes(shape);
  }
}

}  // namespace

const Kernels& avx2_kernels() {
  static constexpr Kernels table = {Avx2::name,
                                    packed_bytes,
                                    pack,
                                    Avx2::lanes,
                                    32,
                                    Gemm<Avx2>::conv2d,
                                    depthwise_conv2d,
                                    Gemm<Avx2>::fully_connected,
                                    Gemm<Avx2>::logits,
                                    AddAvx2::add,
                                    PoolingAvx2::average_pool,
                                    PoolingAvx2::max_pool,
                                    PoolingAvx2::mean,
                                    scratch_bytes,
                                    SignsAvx2::philox_signs,
                                    SignsAvx2::perturb,
                                    SignsAvx2::accumulate_signs,
                                    OuterProductAvx2::outer_product,
                                    OuterProductAvx2::positions_at_once};
  return table;
}

}  // namespace pmt::host

#endif
