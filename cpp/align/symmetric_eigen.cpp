#include "align/symmetric_eigen.hpp"

namespace pmt {
namespace {

// Six to nine sweeps reach the precision of a float; one that finds nothing to do is the last.
constexpr int32_t most_sweeps = 16;
constexpr float negligible = 1e-7f;  // of the geometric mean of the two diagonal elements

struct Rotation {
  float cosine, sine;
};

// The rotation that makes element (p, q) zero, of the smaller angle.
Rotation rotation_of(float pp, float qq, float pq) {
  const float ratio = (qq - pp) / (2.0f * pq);
  const float root = __builtin_sqrtf(1.0f + ratio * ratio);
  const float tangent = ratio >= 0.0f ? 1.0f / (ratio + root) : 1.0f / (ratio - root);
  const float cosine = 1.0f / __builtin_sqrtf(1.0f + tangent * tangent);
  return {cosine, tangent * cosine};
}

void rotate(float* a, float* b, int32_t count, int32_t stride, const Rotation& r) {
  for (int32_t i = 0; i < count * stride; i += stride) {
    const float x = a[i];
    const float y = b[i];
    a[i] = r.cosine * x - r.sine * y;
    b[i] = r.sine * x + r.cosine * y;
  }
}

float magnitude(float value) { return value < 0.0f ? -value : value; }

}  // namespace

void symmetric_eigen(int32_t n, float* matrix, float* vectors) {
  for (int32_t i = 0; i < n * n; ++i) vectors[i] = i % (n + 1) == 0 ? 1.0f : 0.0f;
  bool rotated = true;
  for (int32_t sweep = 0; sweep < most_sweeps && rotated; ++sweep) {
    rotated = false;
    for (int32_t p = 0; p < n; ++p) {
      for (int32_t q = p + 1; q < n; ++q) {
        const float pp = matrix[p * n + p];
        const float qq = matrix[q * n + q];
        const float pq = matrix[p * n + q];
        if (pq * pq <= negligible * negligible * magnitude(pp * qq)) continue;
        const Rotation r = rotation_of(pp, qq, pq);
        rotate(matrix + p, matrix + q, n, n, r);
        rotate(matrix + p * n, matrix + q * n, n, 1, r);
        rotate(vectors + p * n, vectors + q * n, n, 1, r);
        rotated = true;
      }
    }
  }
}

}  // namespace pmt
