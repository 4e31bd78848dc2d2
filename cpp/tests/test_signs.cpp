#include <doctest/doctest.h>

#include <vector>

#include "reference/random.hpp"
#include "tests/random_source.hpp"
#include "tests/simulated_kernels.hpp"

using namespace pmt;
using tests::RandomSource;

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
