#include "drivers/cortex_m/memory_protection.hpp"
#include "drivers/cortex_m/registers.hpp"
#include "drivers/io.hpp"

// From link.ld: symbols whose address is the value.
extern "C" uint8_t flash_origin[], flash_bytes[], ram_origin[], ram_bytes[];

namespace pmt::cortex_m {
namespace {

uint32_t value_of(const uint8_t* symbol) { return reinterpret_cast<uint32_t>(symbol); }

}  // namespace

void protect_memory() {
  ProtectionRegion regions[protection_regions];
  const int32_t count =
      protection(value_of(flash_origin), value_of(flash_bytes), value_of(ram_origin), value_of(ram_bytes), regions);
  asm volatile("dmb" ::: "memory");
  io::write(MPU_CTRL, 0);
  for (int32_t i = 0; i < protection_regions; ++i) {
    io::write(MPU_RNR, static_cast<uint32_t>(i));
    io::write(MPU_RBAR, i < count ? regions[i].base : 0);
    io::write(MPU_RASR, i < count ? regions[i].attributes : 0);
  }
  io::write(MPU_CTRL, MPU_CTRL_ENABLE | MPU_CTRL_PRIVDEFENA);
  asm volatile("dsb\n isb" ::: "memory");
}

}  // namespace pmt::cortex_m
