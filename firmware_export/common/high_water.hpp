// High-water mark of memory: it is painted at the start; where the paint is gone, something was written.
#pragma once

#include <cstddef>
#include <cstdint>

namespace pmt::firmware {

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
