#include "core/zo/perturbation.hpp"

#include "core/base/linked/generators.hpp"
#include "core/base/linked/parts.hpp"
#include "core/kernels/signs.hpp"

namespace pmt {
namespace {

constexpr int32_t block_signs = 128;  // of one Philox block

// 32 steps of XORShift32 at once. A step is linear over GF(2), so the next 32 least significant
// bits, and the state behind them, are sums of one table entry for every four bits of the state.
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

constexpr XorshiftTables xorshift_tables = make_xorshift_tables();

// The least significant bits of the next 32 states; `state` becomes the last of them.
uint32_t xorshift_bits(uint32_t& state) {
  uint32_t bits = 0, next = 0;
  for (uint32_t digit = 0; digit < 8; ++digit) {
    const uint32_t value = (state >> (4 * digit)) & 15u;
    bits ^= xorshift_tables.bits[digit][value];
    next ^= xorshift_tables.state[digit][value];
  }
  state = next;
  return bits;
}

}  // namespace

SignStream::SignStream(Generator generator, const StreamId& id) : generator_(generator), id_(id) {
  if (is_part(linked::generators, generator, Generator::xorshift32)) state_ = xorshift_start(id);
}

void SignStream::next(const Kernels& kernels, int32_t count, int8_t* signs) {
  if (is_part(linked::generators, generator_, Generator::philox)) {
    next_philox(kernels, count, signs);
  } else {
    next_xorshift(count, signs);
  }
}

void SignStream::skip(int32_t count) {
  if (is_part(linked::generators, generator_, Generator::philox)) {
    position_ += static_cast<uint32_t>(count);
    return;
  }
  for (; count >= 32; count -= 32) xorshift_bits(state_);
  for (; count > 0; --count) state_ = xorshift32(state_);
}

void SignStream::next_xorshift(int32_t count, int8_t* signs) {
  int32_t i = 0;
  for (; i + 32 <= count; i += 32) store_signs(xorshift_bits(state_), signs + i);
  for (; i < count; ++i) {
    state_ = xorshift32(state_);
    signs[i] = (state_ & 1u) ? -1 : 1;
  }
}

void SignStream::next_philox(const Kernels& kernels, int32_t count, int8_t* signs) {
  while (count > 0) {
    const auto start = static_cast<int32_t>(position_ % block_signs);
    const uint32_t block = position_ / block_signs;
    int32_t take = count / block_signs * block_signs;
    if (start == 0 && take > 0) {
      kernels.philox_signs(id_, block, take / block_signs, signs);
    } else {
      alignas(64) int8_t whole[block_signs];
      kernels.philox_signs(id_, block, 1, whole);
      take = count < block_signs - start ? count : block_signs - start;
      __builtin_memcpy(signs, whole + start, static_cast<uint32_t>(take));
    }
    position_ += static_cast<uint32_t>(take);
    signs += take;
    count -= take;
  }
}

}  // namespace pmt
