// The record of a fault; it outlives the reset that follows.
#pragma once

#include <cstdint>

#include "common/log.hpp"

namespace pmt::cortex_m {

struct Fault {
  uint32_t exception;  // its number; 0: none
  uint32_t pc, lr;     // as stacked; 0 where the stack had no room
  uint32_t cfsr, hfsr, mmfar, bfar;
  uint32_t stack_overflowed;
};

void describe(const Fault& fault, firmware::Line& line);

// In memory that no start clears, as it was before the reset where its checksum is right.
struct Kept {
  uint32_t magic;
  uint32_t restarts;  // by the watchdog, in a row
  Fault fault;        // since the last start
  uint32_t crc32;
};

void keep(const Fault& fault);
// Returns the record from before the reset. A start that is not a restart begins to count anew.
Kept take_kept(bool is_restart);

// A board's reaction to a fault: prints the report, and ends in a reset or not at all. It runs as the
// exception's handler. Where a board defines none, the program ends as by board::exit(1).
[[noreturn]] void after_fault(firmware::Line& report);

}  // namespace pmt::cortex_m
