#include "core/zo/walsh_hadamard.hpp"

#include "core/base/arithmetic.hpp"

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

// Pairs (i, j) of the first `columns` whose difference `period` divides, a power of two.
int64_t pairs_apart_by(int64_t columns, int64_t period) {
  const int64_t whole = columns / period, rest = columns % period;
  return (period - rest) * whole * whole + rest * (whole + 1) * (whole + 1);
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

// The product of columns i and j is that of column i XOR j with a column of ones: the sum of its entries,
// which begin with as many +1 as its lowest bit says, go on with as many -1, and so on in turn (or all
// with the other sign).
float column_correlation(uint32_t rows, uint32_t columns) {
  if (rows == 0 || columns < 2) return 0.0f;
  float squares = 0.0f;
  for (int64_t bit = 1; bit < columns; bit *= 2) {
    const int64_t pairs = pairs_apart_by(columns, bit) - pairs_apart_by(columns, 2 * bit);
    const int64_t left = rows % (2 * bit), sum = left <= bit ? left : 2 * bit - left;
    squares += to_float(pairs) * to_float(sum * sum);
  }
  return squares / (to_float(rows) * to_float(int64_t{columns} * (columns - 1)));
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
