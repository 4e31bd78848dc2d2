#include "reference/random.hpp"

namespace pmt::reference {

namespace {

// Upper 32 bits of a * b by long multiplication of 16-bit halves.
uint32_t multiply_high(uint32_t a, uint32_t b) {
  const uint32_t a0 = a & 0xFFFFu, a1 = a >> 16, b0 = b & 0xFFFFu, b1 = b >> 16;
  const uint32_t middle = a1 * b0 + ((a0 * b0) >> 16);
  const uint32_t cross = a0 * b1 + (middle & 0xFFFFu);
  return a1 * b1 + (middle >> 16) + (cross >> 16);
}

std::array<uint32_t, 4> philox_round(const std::array<uint32_t, 4>& x, const std::array<uint32_t, 2>& key) {
  constexpr uint32_t multiplier[2] = {0xD2511F53u, 0xCD9E8D57u};
  return {multiply_high(multiplier[1], x[2]) ^ x[1] ^ key[0], multiplier[1] * x[2],
          multiply_high(multiplier[0], x[0]) ^ x[3] ^ key[1], multiplier[0] * x[0]};
}

}  // namespace

std::array<uint32_t, 4> philox4x32(std::array<uint32_t, 4> counter, std::array<uint32_t, 2> key) {
  for (int round = 0; round < 10; ++round) {
    counter = philox_round(counter, key);
    key[0] += 0x9E3779B9u;  // golden ratio
    key[1] += 0xBB67AE85u;  // sqrt(3) - 1
  }
  return counter;
}

uint32_t xorshift32(uint32_t state) {
  state ^= state << 13;
  state ^= state >> 17;
  state ^= state << 5;
  return state;
}

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
