// Milliseconds, counted by SysTick.
#pragma once

#include <cstdint>

namespace pmt::cortex_m {

void start_tick(uint32_t core_hz);
uint32_t milliseconds();

}  // namespace pmt::cortex_m
