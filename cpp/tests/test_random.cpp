#include <doctest/doctest.h>

#include <array>
#include <vector>

#include "core/base/random.hpp"
#include "reference/random.hpp"
#include "tests/random_source.hpp"
#include "tests/simulated_kernels.hpp"

using namespace pmt;
using Words128 = std::array<uint32_t, 4>;
using tests::RandomSource;

namespace {

Words128 core_philox(const Words128& counter, const std::array<uint32_t, 2>& key) {
  const Random128 block = philox4x32(counter.data(), key.data());
  return {block.word[0], block.word[1], block.word[2], block.word[3]};
}

}  // namespace

TEST_CASE("philox4x32 gives the known answers of Random123") {
  struct Vector {
    Words128 counter;
    std::array<uint32_t, 2> key;
    Words128 expected;
  };
  const Vector vectors[] = {
      {{0, 0, 0, 0}, {0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
      {{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff},
       {0xffffffff, 0xffffffff},
       {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
      {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
       {0xa4093822, 0x299f31d0},
       {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
  };
  for (const Vector& vector : vectors) {
    CHECK(core_philox(vector.counter, vector.key) == vector.expected);
    CHECK(reference::philox4x32(vector.counter, vector.key) == vector.expected);
  }
}

TEST_CASE("philox4x32 equals its definition in 32-bit arithmetic") {
  tests::RandomSource random(11);
  const auto word = [&] { return static_cast<uint32_t>(random.bits()); };
  for (int i = 0; i < 2000; ++i) {
    const Words128 counter = {word(), word(), word(), word()};
    const std::array<uint32_t, 2> key = {word(), word()};
    CHECK(core_philox(counter, key) == reference::philox4x32(counter, key));
  }
}

TEST_CASE("xorshift32 starts from 1 as Marsaglia's 13, 17, 5 does") {
  uint32_t state = 1;
  for (const uint32_t expected : {270369u, 67634689u, 2647435461u, 307599695u, 2398689233u}) {
    CHECK(reference::xorshift32(state) == expected);
    state = xorshift32(state);
    CHECK(state == expected);
  }
}

TEST_CASE("every field of a stream's name changes its numbers") {
  const StreamId base = {1, 2, 3, 4, 5, Purpose::weight_signs};
  StreamId others[6] = {base, base, base, base, base, base};
  others[0].seed = 9;
  others[1].step = 9;
  others[2].layer = 9;
  others[3].query = 9;
  others[4].sample = 9;
  others[5].purpose = Purpose::rounding;
  for (const StreamId& other : others) {
    CHECK(random_block(other, 0).word[0] != random_block(base, 0).word[0]);
    CHECK(xorshift_start(other) != xorshift_start(base));
  }
  CHECK(random_block(base, 1).word[0] != random_block(base, 0).word[0]);
}

namespace {

std::vector<int8_t> expected_signs(const StreamId& id, uint32_t first_block, int32_t blocks) {
  const uint32_t purpose_and_query = static_cast<uint32_t>(id.purpose) * 65536u + id.query;
  std::vector<int8_t> signs;
  for (int32_t i = 0; i < blocks; ++i) {
    const uint32_t index = first_block + static_cast<uint32_t>(i);
    for (const uint32_t word :
         reference::philox4x32({index, id.sample, id.layer, purpose_and_query}, {id.seed, id.step})) {
      for (int bit = 0; bit < 32; ++bit) signs.push_back((word >> bit) % 2 == 1 ? -1 : 1);
    }
  }
  return signs;
}

std::vector<int8_t> kernel_signs(const Kernels& kernels, const StreamId& id, uint32_t first_block, int32_t blocks) {
  std::vector<int8_t> signs(static_cast<size_t>(128 * blocks));
  kernels.philox_signs(id, first_block, blocks, signs.data());
  return signs;
}

void compare(const StreamId& id, uint32_t first_block, int32_t blocks) {
  CAPTURE(first_block);
  CAPTURE(blocks);
  const std::vector<int8_t> expected = expected_signs(id, first_block, blocks);
  for (const Kernels* kernels : tests::tested_kernels()) {
    CAPTURE(kernels->name);
    CHECK(kernel_signs(*kernels, id, first_block, blocks) == expected);
  }
}

}  // namespace

TEST_CASE("philox_signs are the bits of the stream's blocks, for every number of blocks") {
  RandomSource random(25);
  const auto word = [&] { return static_cast<uint32_t>(random.bits()); };
  for (int32_t blocks = 0; blocks <= 40; ++blocks) {
    for (const Purpose purpose : {Purpose::weight_signs, Purpose::bias_signs, Purpose::node_signs}) {
      compare({word(), word(), word(), word() % 4096, word(), purpose}, word() % 1000, blocks);
    }
  }
}

TEST_CASE("philox_signs of the last blocks go on with block 0") {
  const StreamId id = {3, 1, 4, 15, 9, Purpose::node_signs};
  for (uint32_t before = 0; before <= 9; ++before) compare(id, 0u - before, 17);
}
