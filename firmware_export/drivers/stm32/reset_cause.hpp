// Why the chip started: the flags of RCC_CSR (RM0385 section 5.3.21) and RCC_RSR (RM0455 section 8.7.35).
#pragma once

#include <cstdint>

namespace pmt::stm32 {

struct ResetFlags {
  uint32_t address;
  uint32_t power, watchdog, software, pin;
  uint32_t clear;
};

enum class ResetCause { power, watchdog, software, pin, other };

// Clears the flags: otherwise they add up from one reset to the next.
ResetCause take_reset_cause(const ResetFlags& flags);

// "by ..."
const char* name_of(ResetCause cause);

}  // namespace pmt::stm32
