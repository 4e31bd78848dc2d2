#include <doctest/doctest.h>

#include <cmath>
#include <vector>

#include "core/align/covariance_alignment.hpp"
#include "tests/random_source.hpp"

using namespace pmt;
using namespace pmt::tests;

namespace {

using Matrix = std::vector<float>;

size_t at(int32_t n, int32_t i, int32_t j) { return static_cast<size_t>(i * n + j); }

Matrix product(int32_t n, const Matrix& a, const Matrix& b) {
  Matrix c(a.size());
  for (int32_t i = 0; i < n; ++i) {
    for (int32_t j = 0; j < n; ++j) {
      double sum = 0;
      for (int32_t k = 0; k < n; ++k) sum += double{a[at(n, i, k)]} * double{b[at(n, k, j)]};
      c[at(n, i, j)] = static_cast<float>(sum);
    }
  }
  return c;
}

// The covariance of `rank` random vectors, mean variance 1.
Matrix random_covariance(RandomSource& random, int32_t n, int32_t rank) {
  std::vector<double> sum(static_cast<size_t>(n * n));
  for (int32_t r = 0; r < rank; ++r) {
    std::vector<double> vector(static_cast<size_t>(n));
    for (double& value : vector) value = random.real(-1, 1);
    for (int32_t i = 0; i < n; ++i) {
      for (int32_t j = 0; j < n; ++j)
        sum[at(n, i, j)] += vector[static_cast<size_t>(i)] * vector[static_cast<size_t>(j)];
    }
  }
  double trace = 0;
  for (int32_t i = 0; i < n; ++i) trace += sum[at(n, i, i)];
  Matrix result;
  for (const double value : sum) result.push_back(static_cast<float>(value * n / trace));
  return result;
}

double largest_difference(const Matrix& a, const Matrix& b) {
  double largest = 0;
  for (size_t i = 0; i < a.size(); ++i) largest = std::fmax(largest, std::fabs(double{a[i]} - double{b[i]}));
  return largest;
}

Matrix with_ridge(int32_t n, Matrix matrix) {
  for (int32_t i = 0; i < n; ++i) matrix[at(n, i, i)] += transport_ridge;
  return matrix;
}

Matrix map_of(int32_t n, const Matrix& reference, const Matrix& found) {
  Matrix map(found.size());
  Matrix scratch(static_cast<size_t>(transport_floats(n)));
  transport_map(n, reference.data(), found.data(), map.data(), scratch.data());
  return map;
}

}  // namespace

TEST_CASE("eigenvalues of a matrix that is known") {
  Matrix matrix = {2, 1, 1, 2};
  Matrix vectors(4);
  symmetric_eigen(2, matrix.data(), vectors.data());
  CHECK(std::fmin(matrix[0], matrix[3]) == doctest::Approx(1));
  CHECK(std::fmax(matrix[0], matrix[3]) == doctest::Approx(3));
  CHECK(std::fabs(vectors[0] * vectors[2] + vectors[1] * vectors[3]) < 1e-6);
}

TEST_CASE("eigenvectors are orthonormal and give the matrix back") {
  RandomSource random(5);
  for (const int32_t n : {1, 2, 3, 9, 25, 49}) {
    CAPTURE(n);
    const Matrix matrix = random_covariance(random, n, n + 2);
    Matrix values = matrix;
    Matrix vectors(matrix.size());
    symmetric_eigen(n, values.data(), vectors.data());
    Matrix turned(vectors.size());
    Matrix identity(vectors.size());
    Matrix diagonal(vectors.size());
    for (int32_t i = 0; i < n; ++i) {
      for (int32_t j = 0; j < n; ++j) turned[at(n, j, i)] = vectors[at(n, i, j)];
      identity[at(n, i, i)] = 1;
      diagonal[at(n, i, i)] = values[at(n, i, i)];
    }
    CHECK(largest_difference(product(n, vectors, turned), identity) < 1e-4);
    CHECK(largest_difference(product(n, turned, product(n, diagonal, vectors)), matrix) < 1e-4 * n);
  }
}

TEST_CASE("the map gives the found covariance the reference's, and is symmetric") {
  RandomSource random(6);
  for (const int32_t n : {1, 2, 9, 25, 49}) {
    for (const int32_t rank : {n + 4, n / 2 + 1}) {
      CAPTURE(n);
      CAPTURE(rank);
      const Matrix reference = random_covariance(random, n, n + 4);
      const Matrix found = random_covariance(random, n, rank);
      const Matrix map = map_of(n, reference, found);
      const Matrix mapped = product(n, map, product(n, with_ridge(n, found), map));
      CHECK(largest_difference(mapped, with_ridge(n, reference)) < 0.02);
      for (int32_t i = 0; i < n; ++i) {
        for (int32_t j = 0; j < i; ++j) CHECK(map[at(n, i, j)] == doctest::Approx(map[at(n, j, i)]).epsilon(0.02));
      }
    }
  }
}

TEST_CASE("equal covariances are mapped by the identity, white noise on a constant is smoothed away") {
  RandomSource random(7);
  const Matrix covariance = random_covariance(random, 9, 20);
  Matrix identity(81);
  for (int32_t i = 0; i < 9; ++i) identity[at(9, i, i)] = 1;
  CHECK(largest_difference(map_of(9, covariance, covariance), identity) < 1e-3);
  const Matrix constant(81, 1.0f);
  Matrix noisy(81, 0.5f);
  for (int32_t i = 0; i < 9; ++i) noisy[at(9, i, i)] = 1;
  // Along the constant 9 for 5; across it next to nothing for 0.5.
  const Matrix map = map_of(9, constant, noisy);
  CHECK(map[0] == doctest::Approx((std::sqrt(9.003 / 5.003) + 8 * std::sqrt(0.003 / 0.503)) / 9).epsilon(0.01));
  CHECK(map[1] == doctest::Approx((std::sqrt(9.003 / 5.003) - std::sqrt(0.003 / 0.503)) / 9).epsilon(0.01));
}
