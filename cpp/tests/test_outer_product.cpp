#include <doctest/doctest.h>

#include <vector>

#include "tests/random_source.hpp"
#include "tests/simulated_kernels.hpp"

using namespace pmt;
using tests::RandomSource;

namespace {

struct OuterCase {
  int32_t positions, channels, taps;
  std::vector<int32_t> gradient;  // [position][channel]
  std::vector<int16_t> patches;   // [position][tap]
  std::vector<int64_t> start;     // [channel][tap]
};

OuterCase random_case(RandomSource& random, int32_t positions, int32_t channels, int32_t taps,
                      const std::vector<int32_t>& extremes) {
  OuterCase outer = {positions, channels, taps, {}, {}, {}};
  for (int32_t i = 0; i < positions * channels; ++i) {
    const auto any = static_cast<int32_t>(random.bits());
    outer.gradient.push_back(random.chance(4) ? random.pick(extremes) : any >> random.integer(4, 31));
  }
  for (int32_t i = 0; i < positions * taps; ++i) {
    outer.patches.push_back(
        static_cast<int16_t>(random.chance(4) ? random.pick<int32_t>({-255, 255}) : random.integer(-255, 255)));
  }
  for (int32_t i = 0; i < channels * taps; ++i) outer.start.push_back(static_cast<int64_t>(random.bits()) / 4);
  return outer;
}

std::vector<int64_t> expected_sums(const OuterCase& outer) {
  std::vector<int64_t> sums = outer.start;
  for (int32_t c = 0; c < outer.channels; ++c) {
    for (int32_t k = 0; k < outer.taps; ++k) {
      for (int32_t p = 0; p < outer.positions; ++p) {
        const int64_t gradient = outer.gradient[static_cast<size_t>(p * outer.channels + c)];
        sums[static_cast<size_t>(c * outer.taps + k)] +=
            gradient * outer.patches[static_cast<size_t>(p * outer.taps + k)];
      }
    }
  }
  return sums;
}

void compare(const OuterCase& outer) {
  CAPTURE(outer.positions);
  CAPTURE(outer.channels);
  CAPTURE(outer.taps);
  const std::vector<int64_t> expected = expected_sums(outer);
  for (const Kernels* kernels : tests::tested_kernels()) {
    CAPTURE(kernels->name);
    std::vector<int64_t> sums = outer.start;
    kernels->outer_product(
        {outer.gradient.data(), outer.patches.data(), outer.positions, outer.channels, outer.taps, sums.data()});
    CHECK(sums == expected);
  }
}

// Gradients at which their halves change sign or size.
const std::vector<int32_t> common = {0,      1,     -1,     32767,      32768,     -32768,
                                     -32769, 65535, -65536, 0x7FFF7FFF, INT32_MIN, INT32_MIN + 1};

}  // namespace

TEST_CASE("outer_product gives the sums of its definition") {
  RandomSource random(26);
  for (const int32_t positions : {1, 2, 3, 8, 17}) {
    for (const int32_t channels : {1, 2, 7, 16, 65}) {
      for (const int32_t taps : {1, 9, 16, 17, 27, 48, 144}) {
        compare(random_case(random, positions, channels, taps, common));
      }
    }
  }
}

TEST_CASE("outer_product of more positions and channels than a block holds") {
  RandomSource random(27);
  for (const int32_t positions : {63, 64, 65, 130}) {
    compare(random_case(random, positions, 16, 27, common));
    compare(random_case(random, positions, 131, 20, common));
  }
  compare(random_case(random, 4, 576, 96, common));
}

TEST_CASE("outer_product of gradients at the upper limit of int32") {
  RandomSource random(28);
  for (const int32_t limit : {0x7FFF8000, INT32_MAX}) {
    compare(random_case(random, 5, 17, 33, {limit, INT32_MIN}));
    OuterCase one = random_case(random, 9, 20, 20, {0});
    one.gradient.back() = limit;
    compare(one);
  }
}

TEST_CASE("outer_product whose sums are as large as they can be") {
  for (const int32_t gradient : {0x7FFF7FFF, 32767, -32768, -32769, INT32_MIN}) {
    for (const int16_t patch : {255, -255}) {
      for (const int32_t positions : {64, 600}) {
        const auto count = static_cast<size_t>(positions);
        compare({positions, 3, 17, std::vector<int32_t>(count * 3, gradient), std::vector<int16_t>(count * 17, patch),
                 std::vector<int64_t>(3 * 17, 0)});
      }
    }
  }
}

TEST_CASE("outer_product of literal numbers") {
  // Two positions, two channels, three taps.
  const std::vector<int32_t> gradient = {1, -2, 100000, 0};
  const std::vector<int16_t> patches = {1, 2, 3, -255, 0, 255};
  for (const Kernels* kernels : tests::tested_kernels()) {
    CAPTURE(kernels->name);
    std::vector<int64_t> sums = {0, 0, 0, 10, 10, 10};
    kernels->outer_product({gradient.data(), patches.data(), 2, 2, 3, sums.data()});
    CHECK(sums == std::vector<int64_t>{-25499999, 2, 25500003, 8, 6, 4});
  }
}
