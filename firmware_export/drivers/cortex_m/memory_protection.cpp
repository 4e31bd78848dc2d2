#include "drivers/cortex_m/memory_protection.hpp"

namespace pmt::cortex_m {
namespace {

constexpr uint32_t enabled = 1;
constexpr uint32_t parts = 8;
constexpr int32_t smallest = 8;  // 256 bytes: smaller regions have no parts
constexpr int32_t largest = 31;

struct Cut {
  uint32_t covered = 0;
  ProtectionRegion region = {};
};

// The region of 2^log2 bytes around `begin`, with its parts from there on switched on.
Cut cut(uint32_t begin, uint32_t bytes, Use use, int32_t log2) {
  const uint32_t part = 1u << (log2 - 3);
  if (begin % part != 0) return {};
  const uint32_t base = begin >> log2 << log2;
  const uint32_t first = (begin - base) / part;
  const uint32_t wanted = bytes / part;
  const uint32_t count = wanted < parts - first ? wanted : parts - first;
  const uint32_t on = ((1u << count) - 1) << first;
  const uint32_t size = static_cast<uint32_t>(log2 - 1) << 1;
  return {count * part, {base, static_cast<uint32_t>(use) | (~on & 0xFFu) << 8 | size | enabled}};
}

uint32_t round_up(uint32_t value, uint32_t multiple) { return (value + multiple - 1) / multiple * multiple; }

int32_t cover_at_least(const MemoryRange& range, Use use, ProtectionRegion* regions, int32_t most) {
  for (uint32_t granule = 32; granule != 0 && range.bytes > 0; granule *= 2) {
    const int32_t count = cover(range.begin, round_up(range.bytes, granule), use, regions, most);
    if (count > 0) return count;
  }
  return 0;
}

// One region, from a little before the range on where that begins at no multiple of a part.
int32_t cover_around(const MemoryRange& range, ProtectionRegion* region) {
  for (uint32_t granule = 32; granule != 0 && range.bytes > 0; granule *= 2) {
    const uint32_t begin = range.begin / granule * granule, end = round_up(range.begin + range.bytes, granule);
    if (cover(begin, end - begin, Use::data, region, 1) == 1) return 1;
  }
  return 0;
}

}  // namespace

int32_t cover(uint32_t begin, uint32_t bytes, Use use, ProtectionRegion* regions, int32_t most) {
  int32_t count = 0;
  while (bytes > 0) {
    if (count == most) return 0;
    Cut best;
    for (int32_t log2 = smallest; log2 <= largest; ++log2) {
      const Cut next = cut(begin, bytes, use, log2);
      if (next.covered > best.covered) best = next;
    }
    if (best.covered == 0) return 0;
    regions[count++] = best.region;
    begin += best.covered;
    bytes -= best.covered;
  }
  return count;
}

// Later regions win. The first one takes the rest of the address space, but for the peripherals and the
// processor's own registers: a processor that reads ahead must not reach memory that is not there.
int32_t protection(const MemoryRange& flash, const MemoryRange& ram, const MemoryRange& external,
                   ProtectionRegion (&regions)[protection_regions]) {
  constexpr uint32_t whole_space = 31u << 1;
  constexpr uint32_t but_parts_2_and_7 = 0x84u << 8;
  constexpr int32_t for_flash = 2;
  regions[0] = {0, static_cast<uint32_t>(Use::nothing) | but_parts_2_and_7 | whole_space | enabled};
  int32_t count = 1;
  count += cover(0x40000000, 0x20000000, Use::peripherals, regions + count, 1);
  count += cover_at_least(flash, Use::code, regions + count, for_flash);
  count += cover_around(external, regions + count);
  count += cover_at_least(ram, Use::data, regions + count, protection_regions - count - 1);
  return count;
}

}  // namespace pmt::cortex_m
