// Regions of the memory protection unit, read back as the processor reads them.
#include <doctest/doctest.h>

#include <initializer_list>

#include "drivers/cortex_m/memory_protection.hpp"

using namespace pmt::cortex_m;

namespace {

// The access permission (MPU_RASR.AP) of an address: that of the last region that holds it.
int permission(const ProtectionRegion* regions, int count, uint32_t address) {
  for (int i = count - 1; i >= 0; --i) {
    const uint32_t attributes = regions[i].attributes;
    const uint32_t log2 = (attributes >> 1 & 31) + 1;
    const uint64_t size = uint64_t{1} << log2;
    REQUIRE(regions[i].base % size == 0);
    if (address < regions[i].base || address - regions[i].base >= size) continue;
    const auto part = static_cast<uint32_t>((address - regions[i].base) / (size / 8));
    if ((attributes >> 8 >> part & 1) == 0) return static_cast<int>(attributes >> 24 & 7);
  }
  return -1;  // the default map
}

constexpr int none = 0, read_write = 3, read_only = 6;

}  // namespace

TEST_CASE("flash and RAM of the boards are guarded to the byte") {
  struct Memory {
    uint32_t flash, flash_bytes, ram, ram_bytes;
  };
  const Memory memories[] = {
      {0x08000000, 0x100000, 0x20010000, 0x40000},    {0x08000000, 0x200000, 0x24000000, 0x100000},
      {0x00000000, 0x400000, 0x20000000, 0x400000},   {0x00000000, 0x100000, 0x20000000, 300 * 1024},
      {0x00000000, 0x20000, 0x20000000, 1023 * 1024}, {0x00000000, 0x20000, 0x20000000, 341 * 1024}};
  for (const Memory& m : memories) {
    ProtectionRegion regions[protection_regions];
    const int count = protection({m.flash, m.flash_bytes}, {m.ram, m.ram_bytes}, {}, regions);
    auto at = [&](uint32_t address) { return permission(regions, count, address); };
    CHECK(at(m.flash) == read_only);
    CHECK(at(m.flash + m.flash_bytes - 1) == read_only);
    CHECK(at(m.flash + m.flash_bytes) == none);
    CHECK(at(m.ram - 1) == none);
    for (uint32_t offset = 0; offset < m.ram_bytes; offset += 512) CHECK(at(m.ram + offset) == read_write);
    CHECK(at(m.ram + m.ram_bytes - 1) == read_write);
    CHECK(at(m.ram + m.ram_bytes) == none);
    CHECK(at(0x40011000) == read_write);  // peripherals
    CHECK(at(0x60000000) == none);        // external memory that is not there
    CHECK(at(0xC0000000) == none);
    CHECK(at(0xE000E010) == -1);  // the processor's own registers
  }
}

TEST_CASE("a flash that needs too many regions is guarded from a little above") {
  ProtectionRegion regions[protection_regions];
  const int count = protection({0, 341 * 1024}, {0x20000000, 0x40000}, {}, regions);
  CHECK(permission(regions, count, 341 * 1024 - 1) == read_only);
  CHECK(permission(regions, count, 344 * 1024) == none);
  CHECK(permission(regions, count, 0x2003FFFF) == read_write);
  CHECK(permission(regions, count, 0x20040000) == none);
}

TEST_CASE("external memory is open as far as a program takes it, rounded up") {
  ProtectionRegion regions[protection_regions];
  const int count = protection({0, 0x100000}, {0x20000000, 0x40000}, {0x60000000, 4000000}, regions);
  for (const uint32_t address : {0x60000000u, 0x60000000u + 3999999, 0x2003FFFFu}) {
    CHECK(permission(regions, count, address) == read_write);
  }
  CHECK(permission(regions, count, 0x60400000) == none);
}

TEST_CASE("external memory of any origin is open, and a region stays free") {
  for (const uint32_t origin : {0xC0000400u, 0xC007F800u, 0xC0123400u}) {
    for (uint32_t flash_bytes = 0x8000; flash_bytes <= 0x80000; flash_bytes += 0x1400) {
      ProtectionRegion regions[protection_regions];
      const int count = protection({0x08000000, flash_bytes}, {0x20010000, 250000}, {origin, 0x200000}, regions);
      CHECK(count < protection_regions);
      for (const uint32_t address : {origin, origin + 0x1FFFFF, 0x20010000u, 0x20010000u + 249999}) {
        CHECK(permission(regions, count, address) == read_write);
      }
    }
  }
}

TEST_CASE("a range that regions do not suffice for is said") {
  ProtectionRegion regions[2];
  CHECK(cover(0x20000000, 0x40000, Use::data, regions, 1) == 1);
  CHECK(cover(0x20000000, 341 * 1024, Use::data, regions, 2) == 0);
}
