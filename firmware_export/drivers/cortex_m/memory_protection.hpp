// The memory protection unit (ARMv7-M, 8 regions) allows what the linker script gives out, and
// nothing else: flash is read and executed, RAM is read and written, peripherals are device memory;
// the first byte outside of them faults. Below the RAM stands the stack's end: it is guarded too.
#pragma once

#include <cstdint>

namespace pmt::cortex_m {

// The values of MPU_RBAR and MPU_RASR for one region.
struct ProtectionRegion {
  uint32_t base;
  uint32_t attributes;
};

enum class Use : uint32_t {
  nothing = 0x10000000,      // no access
  code = 0x06020000,         // read and execute; write-through
  data = 0x130B0000,         // read and write; write-back, allocated by reads and writes
  peripherals = 0x13010000,  // read and write; device, shared
};

// Covers begin .. begin + bytes exactly with at most `most` regions; multiples of 32. Returns their
// number, 0 if they do not suffice. Regions have a size that is a power of 2, stand at a multiple of
// it, and are made of eight parts that can be left out.
int32_t cover(uint32_t begin, uint32_t bytes, Use use, ProtectionRegion* regions, int32_t most);

constexpr int32_t protection_regions = 8;

struct MemoryRange {
  uint32_t begin, bytes;
};

// The regions for a program, which may have no external memory; one stays free. External memory is open from a little
// before it on where its origin needs that. An end that needs too many regions is moved up to where they suffice; a RAM
// of at most 4 MB that stands at a multiple of 4 MB is exact to 1 KB where there is no external memory. Returns their
// number.
int32_t protection(const MemoryRange& flash, const MemoryRange& ram, const MemoryRange& external,
                   ProtectionRegion (&regions)[protection_regions]);

}  // namespace pmt::cortex_m
