// A Cortex-M7's caches, memory protection and tick, and the high-water marks.
#pragma once

#include "common/board.hpp"

namespace pmt::cortex_m {

// Empties and switches on the instruction and the data cache. A data cache that a boot loader has left on
// stays as it is: it may hold what memory does not yet.
void enable_caches();
// Writes to memory what the data cache holds of a range.
void clean_data_cache(const void* begin, size_t bytes);

// Lets data be read and written there, past the cache, beside what the start has allowed: by a region of the memory
// protection unit that is free. False where there is none, or the range is not one region.
bool allow_writes(uint32_t begin, uint32_t bytes);

// Milliseconds, counted by SysTick: by its interrupt, and by whoever asks for the time, so that waiting ends
// where the interrupt cannot be taken, too.
void start_tick(uint32_t core_hz);
uint32_t milliseconds();

// The start paints the stack, and the RAM from the arena's first byte to the region's last one.

// The result of board::arena() for the section .arena, which link.ld places last. The RAM behind it is painted
// too, so that a write beyond the arena shows.
board::Memory arena(uint8_t* memory, size_t bytes);

board::StackUse stack_use();

}  // namespace pmt::cortex_m
