#include "drivers/cortex_m/processor.hpp"

#include "drivers/cortex_m/memory_protection.hpp"
#include "drivers/cortex_m/registers.hpp"
#include "drivers/io.hpp"

// From link.ld.
extern "C" uint32_t stack_limit[];
extern "C" uint32_t stack_top[];
extern "C" uint8_t arena_end[];

namespace pmt::cortex_m {
namespace {

constexpr uint32_t line_bytes = 32;

void barrier() { asm volatile("dsb\n isb" ::: "memory"); }

uint32_t leading_zeros(uint32_t value) { return static_cast<uint32_t>(__builtin_clz(value)); }

void invalidate_data_cache() {
  io::write(CSSELR, 0);  // level 1, data
  barrier();
  const uint32_t geometry = io::read(CCSIDR);
  const uint32_t last_set = geometry >> 13 & 0x7FFF;
  const uint32_t last_way = geometry >> 3 & 0x3FF;
  const uint32_t set_shift = (geometry & 7) + 4;
  const uint32_t way_shift = last_way == 0 ? 0 : leading_zeros(last_way);
  for (uint32_t set = 0; set <= last_set; ++set) {
    for (uint32_t way = 0; way <= last_way; ++way) io::write(DCISW, way << way_shift | set << set_shift);
  }
}

}  // namespace

void enable_caches() {
  barrier();
  io::write(ICIALLU, 0);
  barrier();
  io::set_bits(CCR, CCR_IC);
  barrier();
  if ((io::read(CCR) & CCR_DC) != 0) return;
  invalidate_data_cache();
  barrier();
  io::set_bits(CCR, CCR_DC);
  barrier();
}

void clean_data_cache(const void* begin, size_t bytes) {
  const auto first = static_cast<uint32_t>(reinterpret_cast<uintptr_t>(begin)) / line_bytes * line_bytes;
  const auto end = static_cast<uint32_t>(reinterpret_cast<uintptr_t>(begin) + bytes);
  barrier();
  for (uint32_t line = first; line < end; line += line_bytes) io::write(DCCMVAC, line);
  barrier();
}

bool allow_writes(uint32_t begin, uint32_t bytes) {
  constexpr uint32_t enabled = 1;
  ProtectionRegion region;
  if (cover(begin, bytes, Use::peripherals, &region, 1) != 1) return false;
  for (uint32_t i = 0; i < protection_regions; ++i) {
    io::write(MPU_RNR, i);
    if ((io::read(MPU_RASR) & enabled) != 0) continue;
    io::write(MPU_RBAR, region.base);
    io::write(MPU_RASR, region.attributes);
    barrier();
    return true;
  }
  return false;
}

board::Memory arena(uint8_t* memory, size_t bytes) { return {memory, bytes, static_cast<size_t>(arena_end - memory)}; }

board::StackUse stack_use() {
  const uint32_t* deepest = stack_limit;
  while (deepest < stack_top && *deepest == firmware::paint_word) ++deepest;
  return {static_cast<size_t>(stack_top - deepest) * sizeof(uint32_t),
          static_cast<size_t>(stack_top - stack_limit) * sizeof(uint32_t)};
}

}  // namespace pmt::cortex_m
