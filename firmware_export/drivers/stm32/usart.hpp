// A serial line that only sends, 8N1 (RM0385 section 31, RM0455 section 51).
#pragma once

#include <cstdint>

namespace pmt::stm32 {

// `kernel_hz` is the clock that the peripheral divides.
void open_usart(uint32_t base, uint32_t kernel_hz, uint32_t baud);
// Waits for room; "\n" is sent as "\r\n". Where the line is not open, or takes nothing for long, the text is
// lost, and no time.
void send(uint32_t base, const char* text);
// Waits until the last bit is on the line.
void flush_usart(uint32_t base);

}  // namespace pmt::stm32
