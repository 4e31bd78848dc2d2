#include "reference/hadamard.hpp"

namespace pmt::reference {

xt::xtensor<int8_t, 2> hadamard_matrix(size_t order) {
  xt::xtensor<int8_t, 2> matrix = xt::ones<int8_t>({order, order});
  for (size_t m = 1; m < order; m *= 2) {
    for (size_t row = 0; row < m; ++row) {
      for (size_t column = 0; column < m; ++column) {
        const int8_t entry = matrix(row, column);
        matrix(row, m + column) = entry;
        matrix(m + row, column) = entry;
        matrix(m + row, m + column) = static_cast<int8_t>(-entry);
      }
    }
  }
  return matrix;
}

size_t hadamard_order(size_t columns) {
  size_t order = 1;
  while (order < columns) order *= 2;
  return order;
}

Vector<int8_t> hadamard_direction(const Vector<int8_t>& signs, const xt::xtensor<int8_t, 2>& matrix, size_t row,
                                  size_t first, size_t shift) {
  Vector<int8_t> direction = signs;
  for (size_t i = 0; i < signs.size(); ++i) {
    direction(i) = static_cast<int8_t>(signs(i) * matrix(row, (first + i) ^ shift));
  }
  return direction;
}

}  // namespace pmt::reference
