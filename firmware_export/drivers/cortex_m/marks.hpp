// High-water marks. The start paints the stack, and the RAM from the arena's first byte to the region's last one.
#pragma once

#include "common/board.hpp"

namespace pmt::cortex_m {

// The result of board::arena() for the section .arena, which link.ld places last. The RAM behind it is painted
// too, so that a write beyond the arena shows.
board::Memory arena(uint8_t* memory, size_t bytes);

board::StackUse stack_use();

}  // namespace pmt::cortex_m
