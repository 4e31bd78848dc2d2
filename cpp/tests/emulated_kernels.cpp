#include "tests/emulated_kernels.hpp"

#include "core/kernels/portable.hpp"
#include "host/kernels/gemm.hpp"
#include "host/kernels/kernel_choice.hpp"
#include "host/kernels/pack.hpp"
#include "tests/isa_emulated.hpp"

namespace pmt::tests {

const Kernels& emulated_kernels() {
  static const Kernels table = [] {
    Kernels kernels = portable_kernels();
    kernels.name = Emulated::name;
    kernels.packed_bytes = host::GemmPacking<Emulated>::bytes;
    kernels.pack = host::GemmPacking<Emulated>::pack;
    kernels.channel_multiple = Emulated::lanes;
    kernels.alignment = 64;
    kernels.conv2d = host::Gemm<Emulated>::conv2d;
    kernels.fully_connected = host::Gemm<Emulated>::fully_connected;
    kernels.logits = host::Gemm<Emulated>::logits;
    kernels.scratch_bytes = host::Gemm<Emulated>::scratch_bytes;
    return kernels;
  }();
  return table;
}

std::vector<const Kernels*> tested_kernels() {
  std::vector<const Kernels*> kernels = host::available_kernels();
  kernels.push_back(&emulated_kernels());
  return kernels;
}

}  // namespace pmt::tests
