// What a board has in addition where a program is talked to: its replies are what board::print writes.
#pragma once

#include <cstddef>
#include <cstdint>

namespace pmt::board {

// Called once, after init().
void open_serial();
// Waits for `count` bytes, and keeps the watchdog fed.
void read_serial(void* bytes, size_t count);

}  // namespace pmt::board
