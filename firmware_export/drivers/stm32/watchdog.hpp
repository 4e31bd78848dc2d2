// The independent watchdog (RM0385 section 26, RM0455 section 46): it has its own oscillator of about
// 32 kHz, and nothing but a reset stops it. While a debugger holds the processor, it stands still.
#pragma once

#include <cstdint>

namespace pmt::stm32 {

struct Watchdog {
  uint32_t base;
  // The debug unit's register, and its bit that stops the watchdog with the processor.
  uint32_t freeze, freeze_bit;
};

constexpr uint32_t longest_seconds = 32;

// Resets the chip so long after the last feeding, roughly. It may be started again, with another time.
void start_watchdog(const Watchdog& watchdog, uint32_t seconds = longest_seconds);
void feed_watchdog(const Watchdog& watchdog);

}  // namespace pmt::stm32
