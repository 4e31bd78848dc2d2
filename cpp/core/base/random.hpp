// Counter-based random numbers: (seed, step, layer, query, sample) names a stream, so that every
// thread, and the device, draws the same numbers in any order.
#pragma once

#include <cstdint>

namespace pmt {

// 6 is that of a mask in pmt.methods.deepzero.
enum class Purpose : uint32_t { weight_signs = 0, bias_signs = 1, node_signs = 2, rounding = 3, order = 4 };

struct StreamId {
  uint32_t seed;
  uint32_t step;
  uint32_t layer;   // op index
  uint32_t query;   // below 2^12
  uint32_t sample;  // position in the batch; 0 where the batch shares its perturbations
  Purpose purpose;
};

struct Random128 {
  uint32_t word[4];
};

// Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC'11).
Random128 philox4x32(const uint32_t counter[4], const uint32_t key[2]);

// Block `index` of a stream: 128 bits.
Random128 random_block(const StreamId& id, uint32_t index);

// XORShift32 with shifts 13, 17, 5 (Marsaglia 2003), the generator of the paper's section 3.4.2.
constexpr uint32_t xorshift32(uint32_t state) {
  state ^= state << 13;
  state ^= state >> 17;
  state ^= state << 5;
  return state;
}

// State in which a stream starts; never 0, which XORShift32 cannot leave.
uint32_t xorshift_start(const StreamId& id);

}  // namespace pmt
