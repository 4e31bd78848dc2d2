// Rows of the Hadamard matrix in its natural (Sylvester) order, never stored: entry (row, column) is
// -1 to the number of bits that row and column have in common.
#pragma once

#include <cstdint>

namespace pmt {

// 1 where `bits` has an odd number of ones. Without a population count: not every target has one.
constexpr uint32_t parity(uint32_t bits) {
  bits ^= bits >> 16;
  bits ^= bits >> 8;
  bits ^= bits >> 4;
  return (0x6996u >> (bits & 15u)) & 1u;
}

// The smallest power of two that is not below `count`.
constexpr uint32_t power_of_two_above(uint32_t count) {
  uint32_t power = 1;
  while (power < count) power *= 2;
  return power;
}

// A row, read in order. A row below m has period m: short rows tile any number of columns.
class WalshRow {
 public:
  // Reads the row's entries from `column` on, times -1 where `negative`.
  WalshRow(uint32_t row, uint32_t column, bool negative);

  // Multiplies the next `count` signs by their entries.
  void apply(int32_t count, int8_t* signs);

 private:
  static constexpr int32_t period = 128;  // of the columns' bits that `entries_` stands for

  uint32_t row_, column_;
  bool negative_;
  // XORed with a sign, 0xFE makes +1 -1 and -1 +1.
  alignas(16) uint8_t entries_[period];
};

// The mean square of the scalar product of two of the first `columns` columns over the first `rows`
// rows, as a share of what it is for independent random signs, which is `rows`: 1 for a single row (of two
// columns or more), 0 where rows are complete.
float column_correlation(uint32_t rows, uint32_t columns);

// In place: values[row] -> the sum over rows of values[row] * entry (row, column), for every column.
// `count` is a power of two.
void walsh_hadamard_transform(int32_t* values, int32_t count);

}  // namespace pmt
