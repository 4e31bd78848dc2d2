// A tile of a convolution: all channels of four positions, from int8 weights as they lie in the image and
// widened columns.
#pragma once

#include "core/kernels/arm_dsp/dsp_columns.hpp"
#include "core/kernels/arm_dsp/dsp_requantize.hpp"

namespace pmt::dsp {

// sums[i] += products of a channel's taps with column i.
inline void add_dots(const int8_t* weights, int32_t taps, const uint32_t* columns, int32_t* sums) {
  for (int32_t k = 0; k < taps; k += 4) {
    const uint32_t bytes = load_word(weights + (k + 4 > taps ? taps - 4 : k));
    const Pair even = widen_even(bytes), odd = widen_odd(bytes);
    for (int32_t p = 0; p < column_pixels; ++p, columns += 2) {
      sums[p] = add_products(columns[1], odd, add_products(columns[0], even, sums[p]));
    }
  }
}

struct Tile {
  const int8_t* weights;
  const int32_t* bias;
  const float* scales;
  int8_t* output;  // of the first position
  // From here on in the order in which the assembly keeps it in s6 .. s12.
  const uint32_t* columns;
  const float* scales_end;
  int32_t whole_taps;   // in groups of four
  int32_t last_offset;  // from the end of those to the last group's weights: taps beyond them, less four
  int32_t rest;         // taps beyond them
  int32_t stride;       // from a position's output to the next
  int32_t zero;         // of the output
};

// Requantizes to all of int8. `even_groups` says whether there are an even number of whole groups.
template <bool even_groups, bool has_rest>
void compute_tile(const Tile& tile);

#ifdef PMT_ARM_DSP

// Registers: r0 .. r3 sums of the four positions; r4, r5 even and odd weights; r6, r7 a column's pairs;
// r8 weights, r9 column, r10 where the whole groups end, r11 scales, r12 biases, lr output.
#define PMT_LOAD_WEIGHTS "  ldr    r4, [r8], #4 \n"
#define PMT_WIDEN_WEIGHTS      \
  "  sxtb16 r5, r4, ror #8 \n" \
  "  sxtb16 r4, r4 \n"
#define PMT_COLUMN(sum)            \
  "  ldrd   r6, r7, [r9], #8 \n"   \
  "  smlad  " sum ", r6, r4, " sum \
  " \n"                            \
  "  smlad  " sum ", r7, r5, " sum " \n"
#define PMT_FIRST_COLUMN(sum)    \
  "  ldrd   r6, r7, [r9], #8 \n" \
  "  smuad  " sum                \
  ", r6, r4 \n"                  \
  "  smlad  " sum ", r7, r5, " sum " \n"
#define PMT_GROUP PMT_WIDEN_WEIGHTS PMT_COLUMN("r0") PMT_COLUMN("r1") PMT_COLUMN("r2") PMT_COLUMN("r3")
#define PMT_FIRST_GROUP \
  PMT_WIDEN_WEIGHTS PMT_FIRST_COLUMN("r0") PMT_FIRST_COLUMN("r1") PMT_FIRST_COLUMN("r2") PMT_FIRST_COLUMN("r3")
#define PMT_TILE(second_group, last_group)                               \
  asm volatile(                                                          \
      "  push   {r4-r11, lr} \n"                                         \
      "  mov    r4, r0 \n"                                               \
      "  ldmia  r4!, {r8, r12} \n"                                       \
      "  ldmia  r4!, {r11, lr} \n"                                       \
      "  vldmia r4, {s6-s12} \n"                                         \
      "1:vmov   r4, s8 \n"                                               \
      "  add    r10, r8, r4 \n"                                          \
      "  vmov   r9, s6 \n" PMT_LOAD_WEIGHTS PMT_FIRST_GROUP second_group \
      "  cmp    r8, r10 \n"                                              \
      "  beq    3f \n"                                                   \
      "2:\n" PMT_LOAD_WEIGHTS PMT_GROUP PMT_LOAD_WEIGHTS PMT_GROUP       \
      "  cmp    r8, r10 \n"                                              \
      "  bne    2b \n"                                                   \
      "3:\n" last_group                                                  \
      "  vmov   s0, s1, r0, r1 \n"                                       \
      "  vmov   s2, s3, r2, r3 \n"                                       \
      "  vldmia r12!, {s5} \n"                                           \
      "  vldmia r11!, {s4} \n"                                           \
      "  vcvt.f32.s32 s5, s5 \n"                                         \
      "  vcvt.f32.s32 s0, s0 \n  vcvt.f32.s32 s1, s1 \n"                 \
      "  vcvt.f32.s32 s2, s2 \n  vcvt.f32.s32 s3, s3 \n"                 \
      "  vadd.f32 s0, s0, s5 \n  vadd.f32 s1, s1, s5 \n"                 \
      "  vadd.f32 s2, s2, s5 \n  vadd.f32 s3, s3, s5 \n"                 \
      "  vmul.f32 s0, s0, s4 \n  vmul.f32 s1, s1, s4 \n"                 \
      "  vmul.f32 s2, s2, s4 \n  vmul.f32 s3, s3, s4 \n"                 \
      "  vcvtr.s32.f32 s0, s0 \n  vcvtr.s32.f32 s1, s1 \n"               \
      "  vcvtr.s32.f32 s2, s2 \n  vcvtr.s32.f32 s3, s3 \n"               \
      "  vmov   r4, s12 \n"                                              \
      "  vmov   r0, r1, s0, s1 \n"                                       \
      "  vmov   r2, r3, s2, s3 \n"                                       \
      "  vmov   r5, r6, s10, s11 \n"                                     \
      "  vmov   r7, s7 \n"                                               \
      "  qadd   r0, r0, r4 \n  qadd   r1, r1, r4 \n"                     \
      "  qadd   r2, r2, r4 \n  qadd   r3, r3, r4 \n"                     \
      "  ssat   r0, #8, r0 \n  ssat   r1, #8, r1 \n"                     \
      "  ssat   r2, #8, r2 \n  ssat   r3, #8, r3 \n"                     \
      "  add    r4, lr, r6 \n"                                           \
      "  strb   r1, [lr, r6] \n"                                         \
      "  strb   r2, [lr, r6, lsl #1] \n"                                 \
      "  strb   r3, [r4, r6, lsl #1] \n"                                 \
      "  strb   r0, [lr], #1 \n"                                         \
      "  cmp    r11, r7 \n"                                              \
      "  bne    1b \n"                                                   \
      "  pop    {r4-r11, pc} \n")
#define PMT_REST                \
  "  vmov   r4, r5, s9, s10 \n" \
  "  ldr    r4, [r8, r4] \n"    \
  "  add    r8, r8, r5 \n" PMT_GROUP

template <>
__attribute__((naked, noinline)) inline void compute_tile<false, false>(const Tile&) {
  PMT_TILE("", "");
}
template <>
__attribute__((naked, noinline)) inline void compute_tile<true, false>(const Tile&) {
  PMT_TILE(PMT_LOAD_WEIGHTS PMT_GROUP, "");
}
template <>
__attribute__((naked, noinline)) inline void compute_tile<false, true>(const Tile&) {
  PMT_TILE("", PMT_REST);
}
template <>
__attribute__((naked, noinline)) inline void compute_tile<true, true>(const Tile&) {
  PMT_TILE(PMT_LOAD_WEIGHTS PMT_GROUP, PMT_REST);
}

#undef PMT_REST
#undef PMT_TILE
#undef PMT_FIRST_GROUP
#undef PMT_GROUP
#undef PMT_FIRST_COLUMN
#undef PMT_COLUMN
#undef PMT_WIDEN_WEIGHTS
#undef PMT_LOAD_WEIGHTS

#else

template <bool even_groups, bool has_rest>
void compute_tile(const Tile& tile) {
  const int32_t taps = tile.whole_taps + tile.rest;
  const auto channels = static_cast<int32_t>(tile.scales_end - tile.scales);
  const Range range = {tile.zero, -128, 127};
  for (int32_t c = 0; c < channels; ++c) {
    int32_t sums[column_pixels] = {0, 0, 0, 0};
    add_dots(tile.weights + c * taps, taps, tile.columns, sums);
    for (int32_t p = 0; p < column_pixels; ++p) {
      tile.output[p * tile.stride + c] = range.from(sums[p], static_cast<float>(tile.bias[c]), tile.scales[c]);
    }
  }
}

#endif

}  // namespace pmt::dsp
