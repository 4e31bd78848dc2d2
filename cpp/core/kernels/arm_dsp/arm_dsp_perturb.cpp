#include "core/base/arithmetic.hpp"
#include "core/kernels/arm_dsp/arm_dsp.hpp"
#include "core/kernels/dsp.hpp"
#include "core/kernels/portable/portable.hpp"

namespace pmt::arm_dsp {
namespace {

using namespace dsp;

constexpr uint32_t ones = 0x01010101u;

// mu times each of four signs, -1, 0 or +1.
inline uint32_t four_steps(uint32_t signs, uint32_t mu) {
  const uint32_t not_zero = signs & ones, negative = (signs >> 7) & ones;
  return subtract_bytes(not_zero * mu, negative * (2 * mu));
}

}  // namespace

void perturb(const int8_t* values, const int8_t* signs, int32_t count, int32_t mu, int32_t low, int32_t high,
             int8_t* perturbed) {
  const int32_t whole = mu <= 64 ? count / 4 * 4 : 0;  // 2 * mu is a byte
  const uint32_t lows = four_bytes(low), highs = four_bytes(high);
  for (int32_t i = 0; i < whole; i += 4) {
    const uint32_t four = load_word(signs + i);
    const uint32_t steps = mu == 1 ? four : four_steps(four, static_cast<uint32_t>(mu));
    const uint32_t moved = add_bytes_saturating(load_word(values + i), steps);
    store_word(perturbed + i, smaller_bytes(larger_bytes(moved, lows), highs));
  }
  portable::perturb(values + whole, signs + whole, count - whole, mu, low, high, perturbed + whole);
}

void accumulate_signs(const int8_t* signs, int32_t count, int32_t factor, int32_t* sums) {
  const int32_t whole = count / 4 * 4;
  for (const int8_t* end = signs + whole; signs != end; signs += 4, sums += 4) {
    const uint32_t four = load_word(signs);
    sums[0] += factor * static_cast<int8_t>(four);
    sums[1] += factor * static_cast<int8_t>(four >> 8);
    sums[2] += factor * static_cast<int8_t>(four >> 16);
    sums[3] += factor * static_cast<int8_t>(four >> 24);
  }
  portable::accumulate_signs(signs, count - whole, factor, sums);
}

}  // namespace pmt::arm_dsp
