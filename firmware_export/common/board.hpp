// The interface between the application and a board. A new board is a folder beside
// boards/qemu-mps2-an500 that defines these functions; application and common code stay as they are.
#pragma once

#include <cstddef>
#include <cstdint>

namespace pmt::board {

// Called first in main: clocks, console, storage.
void init();

// Writes text to the console.
void print(const char* text);

// Ends the program; a status other than 0 means failure.
[[noreturn]] void exit(int status);

struct Memory {
  uint8_t* data;  // 16-byte aligned
  size_t bytes;
  // From `data` on, painted before main (firmware::paint), so that the deepest use can be read off; it may be more
  // than `bytes`, to see what is written beyond. 0: not painted.
  size_t painted = 0;
};

// The memory that training may use. It holds arbitrary bytes at the start: training never reads them; paint, where
// there is some, is read at the end.
Memory arena();

struct StackUse {
  size_t used;   // the deepest so far
  size_t bytes;  // 0: it is not measured
};
StackUse stack_use();

// Time since init(), for the log alone: training never depends on it.
uint32_t milliseconds();

// Called between the layers of a step, and before every transfer of the card. A board's watchdog resets it
// otherwise.
void feed_watchdog();

// On while a step runs.
void set_led(bool on);

// Storage: a card of blocks, an SD card's own size.
constexpr uint32_t block_bytes = 512;

enum class CardStatus : int32_t {
  ok = 0,
  absent,           // no card responds
  timeout,          // a card that responded does not any more
  checksum,         // the transfer's CRC is wrong
  write_protected,  // or the card refuses the write
  out_of_range,     // beyond the card's last block
  failed,           // anything else the card or the controller reports
};

// Whether blocks lie on a card of `blocks`.
constexpr bool is_on_card(uint32_t first, uint32_t count, uint32_t blocks) {
  return first <= blocks && count <= blocks - first;
}

// Finds and initializes the card. `blocks` is its size.
CardStatus open_card(uint32_t* blocks);
// One transfer; `bytes` is 4-byte aligned. No retries: who calls decides about them.
CardStatus read_blocks(uint32_t first, uint32_t count, void* bytes);
// Returns when the card has programmed the blocks.
CardStatus write_blocks(uint32_t first, uint32_t count, const void* bytes);

}  // namespace pmt::board

namespace pmt::firmware {

// High-water mark of memory: it is painted at the start; where the paint is gone, something was written.
constexpr uint8_t paint_byte = 0xA5;
constexpr uint32_t paint_word = 0xA5A5A5A5u;

inline void paint(uint8_t* memory, size_t bytes) {
  for (size_t i = 0; i < bytes; ++i) memory[i] = paint_byte;
}

// Bytes from the first one to the last that is not painted, whatever lies between. Bytes at that end that were
// written with the paint's own value are not seen: the mark may be too low, never too high.
inline size_t high_water(const uint8_t* memory, size_t bytes) {
  while (bytes > 0 && memory[bytes - 1] == paint_byte) --bytes;
  return bytes;
}

}  // namespace pmt::firmware
