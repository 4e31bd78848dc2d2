#include "reference/sparsity.hpp"

#include <array>
#include <cstddef>

#include "reference/random.hpp"

namespace pmt::reference {
namespace {

std::array<uint32_t, 4> block(const StreamId& id, uint32_t index) {
  const uint32_t last = static_cast<uint32_t>(id.purpose) * 65536u + id.query;
  return philox4x32({index, id.sample, id.layer, last}, {id.seed, id.step});
}

}  // namespace

std::vector<int32_t> random_order(const StreamId& id, int32_t count) {
  const std::array<uint32_t, 4> multipliers = block(id, 0), offsets = block(id, 1);
  uint64_t modulus = 2, bits = 1;
  for (; modulus < static_cast<uint64_t>(count); modulus *= 2) ++bits;
  const uint64_t shift = (bits + 1) / 2;
  std::vector<int32_t> order;
  for (uint64_t i = 0; i < static_cast<uint64_t>(count); ++i) {
    uint64_t value = i;
    do {
      for (std::size_t round = 0; round < 4; ++round) {
        value = (value * (multipliers[round] | 1u) + offsets[round]) % modulus;
        value ^= value >> shift;
      }
    } while (value >= static_cast<uint64_t>(count));
    order.push_back(static_cast<int32_t>(value));
  }
  return order;
}

}  // namespace pmt::reference
