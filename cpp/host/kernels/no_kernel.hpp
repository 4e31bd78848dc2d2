// For an ISA without a kernel of its own for some kind of layers: none fits.
#pragma once

#include "core/kernels/table.hpp"

namespace pmt::host {

struct NoKernel {
  static bool fits(const OpShape&) { return false; }
  static int64_t packed_bytes(const OpShape&) { return 0; }
  static int32_t scratch_bytes(const OpShape&) { return 0; }
  static void pack(const PackArgs&) {}
  static void run(const LinearArgs&) {}
};

}  // namespace pmt::host
