#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/zo/perturbation.hpp"
#include "reference/random.hpp"
#include "reference/training_step.hpp"
#include "tests/linear_case.hpp"
#include "tests/random_source.hpp"
#include "tests/simulated_kernels.hpp"

using namespace pmt;
using tests::RandomSource;

namespace {

constexpr Generator generators[] = {Generator::philox, Generator::xorshift32};

StreamId random_stream(RandomSource& random) {
  const auto word = [&] { return static_cast<uint32_t>(random.bits()); };
  return {word(), word(), word() % 50, word() % 4096, word() % 100, static_cast<Purpose>(word() % 3)};
}

std::vector<int8_t> signs_of(Generator generator, const StreamId& id, const std::vector<int32_t>& chunks,
                             const Kernels& kernels = portable_kernels()) {
  std::vector<int8_t> signs;
  SignStream stream(generator, id);
  for (const int32_t chunk : chunks) {
    std::vector<int8_t> part(static_cast<size_t>(chunk));
    stream.next(kernels, chunk, part.data());
    signs.insert(signs.end(), part.begin(), part.end());
  }
  return signs;
}

std::vector<int32_t> random_split(RandomSource& random, int32_t count) {
  std::vector<int32_t> chunks;
  while (count > 0) {
    chunks.push_back(std::min(count, random.chance(3) ? 128 * random.integer(1, 3) : random.integer(0, 200)));
    count -= chunks.back();
  }
  return chunks;
}

reference::Vector<int8_t> vector_of(const std::vector<int8_t>& values) {
  return tests::tensor_of<reference::Vector<int8_t>>(values, {values.size()});
}

void compare_perturbed(const std::vector<int8_t>& values, const std::vector<int8_t>& signs, int32_t mu, int32_t low,
                       int32_t high) {
  const auto defined = reference::perturb(vector_of(values), vector_of(signs), mu, low, high);
  const std::vector<int8_t> expected(defined.begin(), defined.end());
  const auto count = static_cast<int32_t>(values.size());
  for (const Kernels* kernels : tests::tested_kernels()) {
    CAPTURE(kernels->name);
    std::vector<int8_t> perturbed(values.size());
    kernels->perturb(values.data(), signs.data(), count, mu, low, high, perturbed.data());
    CHECK(perturbed == expected);
    std::vector<int8_t> in_place = values;
    kernels->perturb(in_place.data(), signs.data(), count, mu, low, high, in_place.data());
    CHECK(in_place == expected);
  }
}

}  // namespace

TEST_CASE("signs are those of the definition, however the stream is split") {
  RandomSource random(12);
  for (const Generator generator : generators) {
    for (int i = 0; i < 50; ++i) {
      const StreamId id = random_stream(random);
      const int32_t count = random.integer(1, 1500);
      const reference::Vector<int8_t> defined = reference::rademacher(generator, id, count);
      const std::vector<int8_t> expected(defined.begin(), defined.end());
      for (const Kernels* kernels : tests::tested_kernels()) {
        CAPTURE(kernels->name);
        CHECK(signs_of(generator, id, {count}, *kernels) == expected);
        CHECK(signs_of(generator, id, random_split(random, count), *kernels) == expected);
      }
    }
  }
}

TEST_CASE("the first signs of one stream, literally") {
  const StreamId id = {1, 0, 0, 0, 0, Purpose::weight_signs};
  CHECK(signs_of(Generator::philox, id, {12}) == std::vector<int8_t>{1, 1, 1, 1, -1, -1, -1, 1, 1, -1, -1, 1});
  CHECK(signs_of(Generator::xorshift32, id, {12}) == std::vector<int8_t>{1, -1, -1, 1, 1, -1, -1, -1, 1, -1, -1, -1});
}

TEST_CASE("signs are balanced and streams do not correlate") {
  const int32_t count = 1 << 16;
  for (const Generator generator : generators) {
    const auto a = signs_of(generator, {7, 1, 2, 0, 0, Purpose::weight_signs}, {count});
    const auto b = signs_of(generator, {7, 1, 2, 1, 0, Purpose::weight_signs}, {count});
    int32_t sum = 0, product = 0;
    for (size_t i = 0; i < a.size(); ++i) {
      sum += a[i];
      product += a[i] * b[i];
    }
    CHECK(std::abs(sum) < 5 * 256);  // five standard deviations
    CHECK(std::abs(product) < 5 * 256);
  }
}

TEST_CASE("perturb gives the bytes of its definition") {
  RandomSource random(13);
  for (int i = 0; i < 100; ++i) {
    const int32_t count = random.integer(1, 300), mu = random.integer(1, 64);
    const int32_t low = random.integer(-128, 0), high = random.integer(1, 127);
    const std::vector<int8_t> values = random.bytes(count);
    const std::vector<int8_t> signs = signs_of(Generator::philox, random_stream(random), {count});
    compare_perturbed(values, signs, mu, low, high);
  }
}

TEST_CASE("perturb of every value by every step, with the bounds of weights and of nodes") {
  std::vector<int8_t> values, signs;
  for (int32_t value = -128; value < 128; ++value) {
    values.insert(values.end(), 2, static_cast<int8_t>(value));
    signs.insert(signs.end(), {1, -1});
  }
  const int32_t bounds[][2] = {{-128, 127}, {-127, 127}, {-128, 40}, {-3, 127}, {-1, 0}};
  for (int32_t mu = 1; mu <= 64; ++mu) {
    CAPTURE(mu);
    for (const auto& bound : bounds) compare_perturbed(values, signs, mu, bound[0], bound[1]);
  }
}

TEST_CASE("perturb of literal numbers") {
  const int8_t values[] = {0, 127, -127, 100}, signs[] = {1, 1, -1, -1};
  for (const Kernels* kernels : tests::tested_kernels()) {
    CAPTURE(kernels->name);
    int8_t perturbed[4];
    kernels->perturb(values, signs, 4, 4, -127, 127, perturbed);
    CHECK(std::vector<int8_t>(perturbed, perturbed + 4) == std::vector<int8_t>{4, 127, -127, 96});
  }
}

TEST_CASE("accumulate_signs of every count, up to the largest factors") {
  RandomSource random(24);
  for (int32_t count = 0; count <= 70; ++count) {
    CAPTURE(count);
    const std::vector<int8_t> signs = signs_of(Generator::philox, random_stream(random), {count});
    const int32_t factor = random.pick<int32_t>({0, 1, -1, INT32_MAX, -INT32_MAX, random.integer(-1000000, 1000000)});
    const auto start = [&](size_t i) { return factor / 2 * (i % 2 == 0 ? -signs[i] : 0); };
    for (const Kernels* kernels : tests::tested_kernels()) {
      CAPTURE(kernels->name);
      std::vector<int32_t> sums(signs.size()), expected(signs.size());
      for (size_t i = 0; i < signs.size(); ++i) {
        sums[i] = start(i);
        expected[i] = start(i) + factor * signs[i];
      }
      kernels->accumulate_signs(signs.data(), count, factor, sums.data());
      CHECK(sums == expected);
    }
  }
}
