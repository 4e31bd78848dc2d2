#include "reference/rademacher.hpp"

#include "reference/random_numbers.hpp"

namespace pmt::reference {
namespace {

std::array<uint32_t, 4> block(const StreamId& id, uint32_t index) {
  const uint32_t last = static_cast<uint32_t>(id.purpose) * 65536u + id.query;
  return philox4x32({index, id.sample, id.layer, last}, {id.seed, id.step});
}

int8_t sign_of(uint32_t bit) { return bit == 1 ? -1 : 1; }

}  // namespace

Vector<int8_t> rademacher(Generator generator, const StreamId& id, int32_t count) {
  auto signs = Vector<int8_t>::from_shape({static_cast<size_t>(count)});
  if (generator == Generator::philox) {
    for (uint32_t i = 0; i < signs.size(); ++i) {
      const uint32_t word = block(id, i / 128)[i % 128 / 32];
      signs(i) = sign_of((word >> (i % 32)) % 2);
    }
    return signs;
  }
  uint32_t state = block(id, 0xFFFFFFFFu)[0];
  if (state == 0) state = 0x9E3779B9u;
  for (uint32_t i = 0; i < signs.size(); ++i) {
    state = xorshift32(state);
    signs(i) = sign_of(state % 2);
  }
  return signs;
}

}  // namespace pmt::reference
