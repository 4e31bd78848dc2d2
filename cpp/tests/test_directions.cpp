#include <doctest/doctest.h>

#include <algorithm>
#include <set>
#include <vector>

#include "core/zo/sparsity.hpp"
#include "core/zo/walsh_hadamard.hpp"
#include "reference/hadamard.hpp"
#include "reference/sparsity.hpp"
#include "tests/random_source.hpp"

using namespace pmt;
using tests::RandomSource;

TEST_CASE("a Walsh row, however it is split, is the Hadamard matrix's") {
  const auto matrix = reference::hadamard_matrix(1024);
  RandomSource random(60);
  for (int i = 0; i < 200; ++i) {
    const auto row = static_cast<uint32_t>(random.integer(0, 1023)),
               column = static_cast<uint32_t>(random.integer(0, 500));
    const bool negative = random.chance(2);
    CAPTURE(row);
    CAPTURE(column);
    std::vector<int8_t> signs, expected;
    WalshRow walsh(row, column, negative);
    while (signs.size() < 300) {
      std::vector<int8_t> part(static_cast<size_t>(random.integer(0, 150)), 1);
      for (size_t k = 0; k < part.size(); k += 3) part[k] = -1;
      walsh.apply(static_cast<int32_t>(part.size()), part.data());
      for (size_t k = 0; k < part.size(); ++k) {
        const int entry = matrix(row, column + signs.size() + k) * (negative ? -1 : 1);
        expected.push_back(static_cast<int8_t>(k % 3 == 0 ? -entry : entry));
      }
      signs.insert(signs.end(), part.begin(), part.end());
    }
    CHECK(signs == expected);
  }
}

TEST_CASE("Walsh rows, literally") {
  std::vector<int8_t> signs(8, 1);
  WalshRow(3, 0, false).apply(8, signs.data());
  CHECK(signs == std::vector<int8_t>{1, -1, -1, 1, 1, -1, -1, 1});
  WalshRow(4, 2, true).apply(8, signs.data());
  CHECK(signs == std::vector<int8_t>{-1, 1, -1, 1, 1, -1, 1, -1});
}

TEST_CASE("the transform is the product with the Hadamard matrix") {
  RandomSource random(61);
  for (int32_t count = 1; count <= 512; count *= 2) {
    const auto matrix = reference::hadamard_matrix(static_cast<size_t>(count));
    std::vector<int32_t> values, expected;
    for (int32_t i = 0; i < count; ++i) values.push_back(random.integer(-4000000, 4000000));
    for (size_t column = 0; column < values.size(); ++column) {
      int32_t sum = 0;
      for (size_t row = 0; row < values.size(); ++row) sum += values[row] * matrix(row, column);
      expected.push_back(sum);
    }
    walsh_hadamard_transform(values.data(), count);
    CHECK(values == expected);
  }
}

TEST_CASE("parity counts ones") {
  CHECK(parity(0) == 0);
  CHECK(parity(1) == 1);
  CHECK(parity(0x80000001u) == 0);
  CHECK(parity(0xFFFFFFFEu) == 1);
  CHECK(parity(0x00010100u) == 0);
  CHECK(power_of_two_above(0) == 1);
  CHECK(power_of_two_above(1) == 1);
  CHECK(power_of_two_above(100) == 128);
  CHECK(power_of_two_above(128) == 128);
}

TEST_CASE("a permutation is that of its definition, and one of all numbers") {
  RandomSource random(62);
  for (int i = 0; i < 60; ++i) {
    const int32_t count = i < 20 ? i + 1 : random.integer(1, 5000);
    CAPTURE(count);
    const StreamId id = {
        static_cast<uint32_t>(random.bits()), static_cast<uint32_t>(random.bits()), 7, 0, 0, Purpose::mask};
    const Permutation permutation(id, count);
    std::vector<int32_t> order;
    for (int32_t k = 0; k < count; ++k) order.push_back(permutation.at(k));
    CHECK(order == reference::random_order(id, count));
    CHECK(std::set<int32_t>(order.begin(), order.end()).size() == order.size());
    CHECK(*std::min_element(order.begin(), order.end()) == 0);
    CHECK(*std::max_element(order.begin(), order.end()) == count - 1);
  }
}

TEST_CASE("every weight, and every pair of neighbors, is active as often as chance has it") {
  const int32_t count = 300, active = 90, draws = 4000;
  std::vector<int32_t> seen(count, 0), together(count - 1, 0);
  for (uint32_t draw = 0; draw < draws; ++draw) {
    const Permutation order({5, draw, 3, 0, 0, Purpose::mask}, count);
    std::vector<bool> on(count, false);
    for (int32_t k = 0; k < active; ++k) on[static_cast<size_t>(order.at(k))] = true;
    for (size_t i = 0; i < on.size(); ++i) {
      seen[i] += on[i];
      if (i > 0) together[i - 1] += on[i - 1] && on[i];
    }
  }
  // Five standard deviations of a binomial, at 0.3 and at 0.3 * 89 / 299.
  for (const int32_t times : seen) CHECK(std::abs(times - 1200) < 5 * 29);
  for (const int32_t times : together) CHECK(std::abs(times - 357) < 5 * 18.1);
}
