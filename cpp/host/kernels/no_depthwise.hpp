// For an ISA without a depthwise convolution of its own: all such layers stay with the portable one.
#pragma once

#include "core/kernels/table.hpp"

namespace pmt::host {

struct NoDepthwise {
  static bool fits(const OpShape&) { return false; }
  static int64_t packed_bytes(const OpShape&) { return 0; }
  static int32_t scratch_bytes(const OpShape&) { return 0; }
  static void pack(const PackArgs&) {}
  static void run(const LinearArgs&) {}
};

}  // namespace pmt::host
