// Products of float rows and matrices, in an order of additions that does not depend on how the work is split.
#pragma once

#include <cstdint>

namespace pmt {

// Matrices have rows of whole groups of columns, for vector units; the last columns may be zeros.
constexpr int32_t column_group = 4;

// sums[k] += row[i] * matrix[i][k], for ascending i.
template <int32_t columns>
void add_row_product(const float* row, int32_t count, const float* matrix, int32_t stride, float* sums) {
  float registers[columns];
  for (int32_t k = 0; k < columns; ++k) registers[k] = sums[k];
  for (int32_t i = 0; i < count; ++i) {
    const float* values = matrix + static_cast<int64_t>(i) * stride;
    for (int32_t k = 0; k < columns; ++k) registers[k] += row[i] * values[k];
  }
  for (int32_t k = 0; k < columns; ++k) sums[k] = registers[k];
}

// The same for `stride` columns, a multiple of column_group.
inline void add_row_product(const float* row, int32_t count, const float* matrix, int32_t stride, float* sums) {
  int32_t k = 0;
  for (; k + 16 <= stride; k += 16) add_row_product<16>(row, count, matrix + k, stride, sums + k);
  switch (stride - k) {
    case 12: return add_row_product<12>(row, count, matrix + k, stride, sums + k);
    case 8: return add_row_product<8>(row, count, matrix + k, stride, sums + k);
    case 4: return add_row_product<4>(row, count, matrix + k, stride, sums + k);
    default: return;
  }
}

}  // namespace pmt
