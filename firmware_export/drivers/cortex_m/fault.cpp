#include "drivers/cortex_m/fault.hpp"

#include <cstddef>

#include "core/base/crc32.hpp"
#include "drivers/cortex_m/processor.hpp"

namespace pmt::cortex_m {
namespace {

constexpr uint32_t magic = 0x544C4650;  // "PFLT"

__attribute__((section(".noinit"))) Kept kept;

uint32_t checksum() { return crc32(reinterpret_cast<const uint8_t*>(&kept), offsetof(Kept, crc32)); }

// The reset that follows loses what the data cache alone holds.
void seal() {
  kept.magic = magic;
  kept.crc32 = checksum();
  clean_data_cache(&kept, sizeof kept);
}

// After power-on memory holds anything.
void forget_what_is_not_whole() {
  if (kept.magic != magic || kept.crc32 != checksum()) kept = {};
}

const char* name_of(uint32_t exception) {
  switch (exception) {
    case 2: return "non-maskable interrupt";
    case 3: return "hard fault";
    case 4: return "memory management fault";
    case 5: return "bus fault";
    case 6: return "usage fault";
    default: return "unexpected interrupt";
  }
}

}  // namespace

void describe(const Fault& fault, firmware::Line& line) {
  line.text(name_of(fault.exception)).text(" (exception ").number(fault.exception);
  if (fault.stack_overflowed != 0) {
    line.text(", the stack overflowed: export with a larger one");
  } else {
    line.text(", pc ").hex(fault.pc).text(", lr ").hex(fault.lr);
  }
  line.text(", cfsr ").hex(fault.cfsr).text(", hfsr ").hex(fault.hfsr);
  line.text(", mmfar ").hex(fault.mmfar).text(", bfar ").hex(fault.bfar).text(")");
}

void keep(const Fault& fault) {
  forget_what_is_not_whole();
  kept.fault = fault;
  seal();
}

Kept take_kept(bool is_restart) {
  forget_what_is_not_whole();
  kept.restarts = is_restart ? kept.restarts + 1 : 0;
  const Kept before = kept;
  kept.fault = {};
  seal();
  return before;
}

}  // namespace pmt::cortex_m
