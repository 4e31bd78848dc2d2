// The independent watchdog (RM0385 section 26, RM0455 section 46): it has its own oscillator of about
// 32 kHz, and nothing but a reset stops it.
#pragma once

#include <cstdint>

namespace pmt::stm32 {

// Resets the chip about 32 s after the last feeding: the longest that it can wait.
void start_watchdog(uint32_t base);
void feed_watchdog(uint32_t base);

}  // namespace pmt::stm32
