// Every register of a peripheral is read and written by these two functions. cortex_m/startup.cpp defines
// them for a microcontroller; the host's tests define them by models of the peripherals.
#pragma once

#include <cstdint>

namespace pmt::io {

uint32_t read(uint32_t address);
void write(uint32_t address, uint32_t value);

inline void set_bits(uint32_t address, uint32_t bits) { write(address, read(address) | bits); }

inline void replace_bits(uint32_t address, uint32_t mask, uint32_t value) {
  write(address, (read(address) & ~mask) | value);
}

// False when the masked bits do not take the value within `polls` reads.
inline bool wait_for(uint32_t address, uint32_t mask, uint32_t value, uint32_t polls) {
  while (polls-- > 0) {
    if ((read(address) & mask) == value) return true;
  }
  return false;
}

}  // namespace pmt::io
