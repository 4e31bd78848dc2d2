#include "host/kernels/tables.hpp"

#ifdef PMT_X86_KERNELS

#include <immintrin.h>

#include <cstring>

#include "core/kernels/portable.hpp"

#pragma GCC push_options
#pragma GCC target("avx2")
#include "host/kernels/isa_avx2.hpp"
#pragma GCC pop_options

namespace pmt::host {
namespace {

int64_t weight_count(const OpShape& shape) {
  const int64_t out = shape.out.channels;
  switch (shape.kind) {
    case OpKind::fully_connected: return out * shape.in.height * shape.in.width * shape.in.channels;
    case OpKind::depthwise_conv2d: return out * shape.kernel_h * shape.kernel_w;
    default: return out * shape.kernel_h * shape.kernel_w * shape.in.channels;
  }
}

void pack(const PackArgs& args) {
  const auto count = static_cast<int32_t>(weight_count(args.shape));
  auto* packed = static_cast<int8_t*>(args.packed);
  if (args.signs == nullptr) {
    std::memcpy(packed, args.weights, static_cast<size_t>(count));
  } else {
    portable::perturb(args.weights, args.signs, count, args.mu, -127, 127, packed);
  }
}

LinearArgs unpacked(const LinearArgs& args) {
  LinearArgs plain = args;
  plain.weights = static_cast<const int8_t*>(args.packed);
  return plain;
}

void conv2d(const LinearArgs& args) { portable::conv2d(unpacked(args)); }
void depthwise_conv2d(const LinearArgs& args) { portable::depthwise_conv2d(unpacked(args)); }
void fully_connected(const LinearArgs& args) { portable::fully_connected(unpacked(args)); }
void logits(const LinearArgs& args, float* logits) { portable::logits(unpacked(args), logits); }

}  // namespace

const Kernels& avx2_kernels() {
  static constexpr Kernels table = {"avx2",
                                    weight_count,
                                    pack,
                                    8,
                                    32,
                                    conv2d,
                                    depthwise_conv2d,
                                    fully_connected,
                                    logits,
                                    portable::add,
                                    portable::average_pool,
                                    portable::max_pool,
                                    portable::mean,
                                    portable::scratch_bytes,
                                    portable::philox_signs,
                                    portable::perturb,
                                    portable::accumulate_signs,
                                    portable::outer_product,
                                    1};
  return table;
}

}  // namespace pmt::host

#endif
