// Hadamard matrices and the directions made of them.
#pragma once

#include "reference/random.hpp"

namespace pmt::reference {

// Sylvester's construction: H(1) = [1], H(2m) = [H(m) H(m); H(m) -H(m)]. `order` is a power of two.
xt::xtensor<int8_t, 2> hadamard_matrix(size_t order);

// The smallest order of such a matrix with so many columns.
size_t hadamard_order(size_t columns);

// signs * the entries of a row at the columns first .. first + signs.size() - 1, each XORed with `shift`.
Vector<int8_t> hadamard_direction(const Vector<int8_t>& signs, const xt::xtensor<int8_t, 2>& matrix, size_t row,
                                  size_t first, size_t shift);

}  // namespace pmt::reference
