// Input patches of four output positions, widened to int16 with the zero point taken off, side by side.
#pragma once

#include "core/kernels/dsp.hpp"
#include "core/kernels/table.hpp"

namespace pmt::dsp {

constexpr int32_t column_pixels = 4;

// Taps come in groups of four: a group holds, for one position after another, the pair of taps 0 and 2
// and the pair of taps 1 and 3, as bytes of weights are widened. Where the taps are not a multiple of
// four, the last group is the last four taps, with zeros for those that the group before it has.
constexpr int32_t column_groups(int32_t taps) { return (taps + 3) / 4; }
constexpr int32_t least_taps = 4;

#ifdef PMT_ARM_DSP

// Whole groups, one after another.
inline uint32_t* widen_groups(const int8_t* patch, const int8_t* end, Pair offset, uint32_t* column) {
  uint32_t a, b;
  asm volatile(
      "1:\n\t"
      "ldr     %[a], [%[patch]], #4\n\t"
      "sxtab16 %[b], %[offset], %[a], ror #8\n\t"
      "sxtab16 %[a], %[offset], %[a]\n\t"
      "cmp     %[patch], %[end]\n\t"
      "strd    %[a], %[b], [%[column]], %[step]\n\t"
      "bne     1b\n\t"
      : [patch] "+r"(patch), [column] "+r"(column), [a] "=&r"(a), [b] "=&r"(b)
      : [end] "r"(end), [offset] "r"(offset), [step] "i"(8 * column_pixels)
      : "cc", "memory");
  return column;
}

#else

inline uint32_t* widen_groups(const int8_t* patch, const int8_t* end, Pair offset, uint32_t* column) {
  for (; patch != end; patch += 4, column += 2 * column_pixels) {
    const uint32_t bytes = load_word(patch);
    column[0] = add_even(offset, bytes);
    column[1] = add_odd(offset, bytes);
  }
  return column;
}

#endif

// One position's taps, least_taps or more, into its place.
inline void widen_patch(const int8_t* patch, int32_t taps, Pair offset, uint32_t* column) {
  const int32_t rest = taps % 4;
  const int8_t* end = patch + (taps - rest);
  column = widen_groups(patch, end, offset, column);
  if (rest == 0) return;
  const uint32_t bytes = load_word(end + rest - 4);
  column[0] = add_even(offset, bytes) & (rest == 1 ? 0u : 0xFFFF0000u);
  column[1] = add_odd(offset, bytes) & (rest == 3 ? 0xFFFFFFFFu : 0xFFFF0000u);
}

}  // namespace pmt::dsp
