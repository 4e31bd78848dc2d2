// Eigenvalues and eigenvectors of a symmetric matrix by Jacobi's rotations (Golub and Van Loan,
// Matrix Computations, 8.5). They take sums, products, quotients and square roots alone, in a fixed
// order: the same bits on every target.
#pragma once

#include <cstdint>

namespace pmt {

// `matrix` (n x n, row by row) becomes diagonal: its eigenvalues. Row i of `vectors` (n x n) becomes
// the eigenvector of eigenvalue i. Accurate to some 1e-6 of the largest eigenvalue.
void symmetric_eigen(int32_t n, float* matrix, float* vectors);

}  // namespace pmt
