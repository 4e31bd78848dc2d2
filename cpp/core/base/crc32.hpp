#pragma once

#include <cstddef>
#include <cstdint>

namespace pmt {

// IEEE CRC-32 as zlib computes it; pass the previous result to continue.
uint32_t crc32(const uint8_t* bytes, size_t count, uint32_t previous = 0);

}  // namespace pmt
