#include "core/transport.hpp"

#include "core/symmetric_eigen.hpp"

namespace pmt {
namespace {

// product = a * b, all n x n.
void multiply(int32_t n, const float* a, const float* b, float* product) {
  for (int32_t i = 0; i < n; ++i) {
    float* row = product + i * n;
    for (int32_t j = 0; j < n; ++j) row[j] = 0.0f;
    for (int32_t k = 0; k < n; ++k) {
      const float factor = a[i * n + k];
      for (int32_t j = 0; j < n; ++j) row[j] += factor * b[k * n + j];
    }
  }
}

// The matrix of these eigenvectors (rows) and of the eigenvalues' roots, or of one over the roots.
void from_roots(int32_t n, const float* values, const float* vectors, bool inverse, float* matrix) {
  for (int32_t i = 0; i < n * n; ++i) matrix[i] = 0.0f;
  float largest = 0.0f;
  for (int32_t k = 0; k < n; ++k) largest = values[k * n + k] > largest ? values[k * n + k] : largest;
  // Below it, rounding decides the eigenvalue.
  const float least = largest * 1e-6f;
  for (int32_t k = 0; k < n; ++k) {
    const float value = values[k * n + k];
    const float root = __builtin_sqrtf(value > least ? value : least);
    const float weight = inverse ? (root > 0.0f ? 1.0f / root : 0.0f) : root;
    const float* vector = vectors + k * n;
    for (int32_t i = 0; i < n; ++i) {
      const float scaled = weight * vector[i];
      for (int32_t j = 0; j < n; ++j) matrix[i * n + j] += scaled * vector[j];
    }
  }
}

void copy_with_ridge(int32_t n, const float* from, float* to) {
  for (int32_t i = 0; i < n * n; ++i) to[i] = from[i] + (i % (n + 1) == 0 ? transport_ridge : 0.0f);
}

}  // namespace

void transport_map(int32_t n, const float* reference, const float* found, float* map, float* scratch) {
  float* values = scratch;
  float* vectors = values + n * n;
  float* root = vectors + n * n;
  float* inverse = root + n * n;
  copy_with_ridge(n, found, values);
  symmetric_eigen(n, values, vectors);
  from_roots(n, values, vectors, false, root);
  from_roots(n, values, vectors, true, inverse);
  copy_with_ridge(n, reference, vectors);
  multiply(n, root, vectors, map);
  multiply(n, map, root, values);
  symmetric_eigen(n, values, vectors);
  from_roots(n, values, vectors, false, root);
  multiply(n, inverse, root, values);
  multiply(n, values, inverse, map);
}

}  // namespace pmt
