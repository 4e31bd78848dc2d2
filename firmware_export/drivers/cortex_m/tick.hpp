// Milliseconds, counted by SysTick: by its interrupt, and by whoever asks for the time, so that waiting ends
// where the interrupt cannot be taken, too.
#pragma once

#include <cstdint>

namespace pmt::cortex_m {

void start_tick(uint32_t core_hz);
uint32_t milliseconds();

}  // namespace pmt::cortex_m
