#include "host/kernels/tables.hpp"

#ifdef PMT_X86_KERNELS

#include <immintrin.h>

#include <cstring>
#include <utility>

#include "core/kernels/portable.hpp"
#include "host/kernels/gemm_block.hpp"

#pragma GCC push_options
#pragma GCC target("avx2")
#include "host/kernels/add_avx2.hpp"
#include "host/kernels/depthwise_avx2.hpp"
#include "host/kernels/gemm.hpp"
#include "host/kernels/isa_avx2.hpp"
#include "host/kernels/outer_product_avx2.hpp"
#include "host/kernels/pack.hpp"
#include "host/kernels/pooling_avx2.hpp"
#include "host/kernels/signs_avx2.hpp"
#pragma GCC pop_options

namespace pmt::host {
namespace {

// A channel multiplier is rare: those layers keep the image's layout and the portable kernel.
int64_t plain_bytes(const OpShape& shape) {
  return static_cast<int64_t>(shape.out.channels) * shape.window.kernel_h * shape.window.kernel_w;
}

void pack_plain(const PackArgs& args) {
  const int64_t count = plain_bytes(args.shape);
  auto* packed = static_cast<int8_t*>(args.packed);
  if (args.signs == nullptr) {
    std::memcpy(packed, args.weights, static_cast<size_t>(count));
  } else {
    SignsAvx2::perturb(args.weights, args.signs, static_cast<int32_t>(count), args.mu, -127, 127, packed);
  }
}

void depthwise_conv2d(const LinearArgs& args) {
  if (DepthwiseAvx2::fits({OpKind::depthwise_conv2d, args.in, args.out, args.window})) {
    DepthwiseAvx2::run(args);
    return;
  }
  LinearArgs plain = args;
  plain.weights = static_cast<const int8_t*>(args.packed);
  portable::depthwise_conv2d(plain);
}

int64_t packed_bytes(const OpShape& shape) {
  if (shape.kind != OpKind::depthwise_conv2d) return GemmPacking<Avx2>::bytes(shape);
  return DepthwiseAvx2::fits(shape) ? DepthwiseAvx2::packed_bytes(shape) : plain_bytes(shape);
}

void pack(const PackArgs& args) {
  if (args.shape.kind != OpKind::depthwise_conv2d) {
    GemmPacking<Avx2>::pack(args);
  } else if (DepthwiseAvx2::fits(args.shape)) {
    DepthwiseAvx2::pack(args);
  } else {
    pack_plain(args);
  }
}

int32_t scratch_bytes(const OpShape& shape) {
  switch (shape.kind) {
    case OpKind::conv2d:
    case OpKind::fully_connected: return Gemm<Avx2>::scratch_bytes(shape);
    case OpKind::depthwise_conv2d:
      return DepthwiseAvx2::fits(shape) ? DepthwiseAvx2::scratch_bytes(shape) : portable::scratch_bytes(shape);
    default: return 0;
  }
}

}  // namespace

const Kernels& avx2_kernels() {
  static constexpr Kernels table = {Avx2::name,
                                    packed_bytes,
                                    pack,
                                    16,
                                    64,
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
