#include "core/walsh_hadamard.hpp"

namespace pmt {
namespace {

void exclusive_or(const uint8_t* entries, uint8_t flip, int32_t count, int8_t* signs) {
  const uint32_t flips = flip * 0x01010101u;
  int32_t i = 0;
  for (; i + 4 <= count; i += 4) {
    uint32_t four, entry;
    __builtin_memcpy(&four, signs + i, 4);
    __builtin_memcpy(&entry, entries + i, 4);
    four ^= entry ^ flips;
    __builtin_memcpy(signs + i, &four, 4);
  }
  for (; i < count; ++i) {
    signs[i] = static_cast<int8_t>(static_cast<uint8_t>(signs[i]) ^ static_cast<uint8_t>(entries[i] ^ flip));
  }
}

}  // namespace

WalshRow::WalshRow(uint32_t row, uint32_t column, bool negative) : row_(row), column_(column), negative_(negative) {
  entries_[0] = 0;
  for (int32_t bit = 1; bit < period; bit *= 2) {  // columns with this bit repeat those without it, or flip them
    const uint8_t flip = (row & static_cast<uint32_t>(bit)) != 0 ? 0xFE : 0;
    for (int32_t c = 0; c < bit; ++c) entries_[bit + c] = static_cast<uint8_t>(entries_[c] ^ flip);
  }
}

void WalshRow::apply(int32_t count, int8_t* signs) {
  while (count > 0) {
    const auto start = static_cast<int32_t>(column_ % period);
    const int32_t run = count < period - start ? count : period - start;
    const bool flip = (parity(row_ & (column_ - static_cast<uint32_t>(start))) != 0) != negative_;
    exclusive_or(entries_ + start, flip ? 0xFE : 0, run, signs);
    column_ += static_cast<uint32_t>(run);
    signs += run;
    count -= run;
  }
}

void walsh_hadamard_transform(int32_t* values, int32_t count) {
  for (int32_t half = 1; half < count; half *= 2) {
    for (int32_t start = 0; start < count; start += 2 * half) {
      for (int32_t i = start; i < start + half; ++i) {
        const int32_t low = values[i], high = values[i + half];
        values[i] = low + high;
        values[i + half] = low - high;
      }
    }
  }
}

}  // namespace pmt
