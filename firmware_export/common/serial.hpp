// What a board has in addition where a program is talked to: its replies are what board::print writes.
#pragma once

#include <cstdint>

namespace pmt::board {

// Called once, after init().
void open_serial();
// Waits for a byte, and keeps the watchdog fed.
uint8_t read_serial();

}  // namespace pmt::board
