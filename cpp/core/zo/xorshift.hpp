// 32 steps of XORShift32 at once. A step is linear over GF(2), so the next 32 least significant
// bits, and the state behind them, are sums of one table entry for every four bits of the state.
#pragma once

#include "core/base/random.hpp"

namespace pmt {

struct XorshiftTables {
  uint32_t bits[8][16];   // the next 32 least significant bits, the first in bit 0
  uint32_t state[8][16];  // the state after 32 steps
};

constexpr XorshiftTables make_xorshift_tables() {
  XorshiftTables tables = {};
  for (uint32_t digit = 0; digit < 8; ++digit) {
    for (uint32_t value = 0; value < 16; ++value) {
      uint32_t state = value << (4 * digit), bits = 0;
      for (uint32_t i = 0; i < 32; ++i) {
        state = xorshift32(state);
        bits |= (state & 1u) << i;
      }
      tables.bits[digit][value] = bits;
      tables.state[digit][value] = state;
    }
  }
  return tables;
}

inline constexpr XorshiftTables xorshift_tables = make_xorshift_tables();

// The least significant bits of the next 32 states; `state` becomes the last of them.
inline uint32_t xorshift_bits(uint32_t& state) {
  uint32_t bits = 0, next = 0;
  for (uint32_t digit = 0; digit < 8; ++digit) {
    const uint32_t value = (state >> (4 * digit)) & 15u;
    bits ^= xorshift_tables.bits[digit][value];
    next ^= xorshift_tables.state[digit][value];
  }
  state = next;
  return bits;
}

}  // namespace pmt
