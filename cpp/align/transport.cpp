#include "align/transport.hpp"

#include "align/symmetric_eigen.hpp"

namespace pmt {
namespace {

// product = a * b, or a * b^T; all n x n.
void multiply(int32_t n, const float* a, const float* b, bool transposed, float* product) {
  for (int32_t i = 0; i < n; ++i) {
    float* row = product + i * n;
    for (int32_t j = 0; j < n; ++j) row[j] = 0.0f;
    for (int32_t k = 0; k < n; ++k) {
      const float factor = a[i * n + k];
      for (int32_t j = 0; j < n; ++j) row[j] += factor * (transposed ? b[j * n + k] : b[k * n + j]);
    }
  }
}

void copy_with_ridge(int32_t n, const float* from, float* to) {
  for (int32_t i = 0; i < n * n; ++i) to[i] = from[i] + (i % (n + 1) == 0 ? transport_ridge : 0.0f);
}

// Rounding may leave an eigenvalue below what the ridge makes the least.
float root_of(float eigenvalue, float least) { return __builtin_sqrtf(eigenvalue > least ? eigenvalue : least); }

// The sum over eigenvectors (rows) v of f(eigenvalue) v v^T, with f the root.
void square_root(int32_t n, const float* values, const float* vectors, float* root) {
  for (int32_t i = 0; i < n * n; ++i) root[i] = 0.0f;
  for (int32_t k = 0; k < n; ++k) {
    const float weight = root_of(values[k * n + k], 0.0f);
    const float* vector = vectors + k * n;
    for (int32_t i = 0; i < n; ++i) {
      const float scaled = weight * vector[i];
      for (int32_t j = 0; j < n; ++j) root[i * n + j] += scaled * vector[j];
    }
  }
}

}  // namespace

// In the basis of found's eigenvectors, where its root is diagonal. The matrix under the outer root is
// then graded, and Jacobi's rotations find small eigenvalues of such matrices to their own precision
// (Demmel and Veselic 1992); formed in the old basis they would drown in the large ones' rounding.
void transport_map(int32_t n, const float* reference, const float* found, float* map, float* scratch) {
  float* values = scratch;
  float* basis = values + n * n;
  float* vectors = basis + n * n;
  float* graded = vectors + n * n;
  float* roots = graded + n * n;
  copy_with_ridge(n, found, values);
  symmetric_eigen(n, values, basis);
  for (int32_t i = 0; i < n; ++i) roots[i] = root_of(values[i * n + i], 0.5f * transport_ridge);
  copy_with_ridge(n, reference, values);
  multiply(n, basis, values, false, map);
  multiply(n, map, basis, true, graded);
  for (int32_t i = 0; i < n * n; ++i) graded[i] *= roots[i / n] * roots[i % n];
  symmetric_eigen(n, graded, vectors);
  square_root(n, graded, vectors, values);
  for (int32_t i = 0; i < n * n; ++i) values[i] /= roots[i / n] * roots[i % n];
  multiply(n, values, basis, false, graded);
  for (int32_t i = 0; i < n; ++i) {
    for (int32_t j = 0; j < n; ++j) vectors[i * n + j] = basis[j * n + i];
  }
  multiply(n, vectors, graded, false, map);
}

}  // namespace pmt
