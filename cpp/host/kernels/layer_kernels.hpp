// The entries of a table that read weights, for an ISA and its kernels of special layers.
#pragma once

#include <cstring>

#include "core/kernels/portable/portable.hpp"
#include "host/kernels/gemm.hpp"
#include "host/kernels/no_kernel.hpp"
#include "host/kernels/pack.hpp"

namespace pmt::host {

// A depthwise layer that the ISA's own kernel does not take (a channel multiplier) keeps the image's
// layout and the portable kernel. A convolution that `Windows` does not take is a matrix product.
template <typename Isa, typename Depthwise, typename Windows = NoKernel>
class LayerKernels {
 public:
  // `table` with its layers on this ISA.
  static Kernels in(Kernels table) {
    table.name = Isa::name;
    table.packed_bytes = packed_bytes;
    table.pack = pack;
    table.channel_multiple = 16;
    table.alignment = 64;
    table.conv2d = conv2d;
    table.depthwise_conv2d = depthwise_conv2d;
    table.fully_connected = Gemm<Isa>::fully_connected;
    table.logits = Gemm<Isa>::logits;
    table.scratch_bytes = scratch_bytes;
    return table;
  }

 private:
  static int64_t plain_bytes(const OpShape& shape) {
    return static_cast<int64_t>(shape.out.channels) * shape.window.kernel_h * shape.window.kernel_w;
  }

  static void pack_plain(const PackArgs& args) {
    const int64_t count = plain_bytes(args.shape);
    auto* packed = static_cast<int8_t*>(args.packed);
    if (args.signs == nullptr) {
      std::memcpy(packed, args.weights, static_cast<size_t>(count));
    } else {
      portable::perturb(args.weights, args.signs, static_cast<int32_t>(count), args.mu, -127, 127, packed);
    }
  }

  static int64_t packed_bytes(const OpShape& shape) {
    if (Windows::fits(shape)) return Windows::packed_bytes(shape);
    if (shape.kind != OpKind::depthwise_conv2d) return GemmPacking<Isa>::bytes(shape);
    return Depthwise::fits(shape) ? Depthwise::packed_bytes(shape) : plain_bytes(shape);
  }

  static void pack(const PackArgs& args) {
    if (Windows::fits(args.shape)) {
      Windows::pack(args);
    } else if (args.shape.kind != OpKind::depthwise_conv2d) {
      GemmPacking<Isa>::pack(args);
    } else if (Depthwise::fits(args.shape)) {
      Depthwise::pack(args);
    } else {
      pack_plain(args);
    }
  }

  static void conv2d(const LinearArgs& args) {
    const bool fits = Windows::fits({OpKind::conv2d, args.in, args.out, args.window});
    fits ? Windows::run(args) : Gemm<Isa>::conv2d(args);
  }

  static void depthwise_conv2d(const LinearArgs& args) {
    if (Depthwise::fits({OpKind::depthwise_conv2d, args.in, args.out, args.window})) {
      Depthwise::run(args);
      return;
    }
    LinearArgs plain = args;
    plain.weights = static_cast<const int8_t*>(args.packed);
    portable::depthwise_conv2d(plain);
  }

  static int32_t scratch_bytes(const OpShape& shape) {
    switch (shape.kind) {
      case OpKind::conv2d:
        return Windows::fits(shape) ? Windows::scratch_bytes(shape) : Gemm<Isa>::scratch_bytes(shape);
      case OpKind::fully_connected: return Gemm<Isa>::scratch_bytes(shape);
      case OpKind::depthwise_conv2d:
        return Depthwise::fits(shape) ? Depthwise::scratch_bytes(shape) : portable::scratch_bytes(shape);
      default: return 0;
    }
  }
};

}  // namespace pmt::host
