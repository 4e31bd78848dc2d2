// Depthwise convolution of one channel whose rows are laid out as int16 (see Band).
#pragma once

#include "core/base/arithmetic.hpp"
#include "core/kernels/arm_dsp/dsp_requantize.hpp"
#include "core/kernels/dsp.hpp"
#include "core/kernels/table.hpp"

namespace pmt::dsp {

// Lays pairs of bytes of four channels out channel by channel, `stride` words apart.
struct ChannelWriter {
  Pair* pairs;
  int32_t stride;
  Pair offset;  // is added

  // The next pair of each channel, from the first bytes of four channels and the second ones.
  void put(uint32_t first, uint32_t second) {
    const Pair even = add_even(offset, first), odd = add_odd(offset, first);
    const Pair next_even = add_even(offset, second), next_odd = add_odd(offset, second);
    pairs[0] = firsts(even, next_even);
    pairs[stride] = firsts(odd, next_odd);
    pairs[2 * stride] = seconds(even, next_even);
    pairs[3 * stride] = seconds(odd, next_odd);
    ++pairs;
  }

  void put_zeros() {
    pairs[0] = 0;
    pairs[stride] = 0;
    pairs[2 * stride] = 0;
    pairs[3 * stride] = 0;
    ++pairs;
  }

  // The next `count` pairs of each channel, one or more, from bytes `step` apart.
  void put_columns(const int8_t* bytes, int32_t step, int32_t count);
};

#ifdef PMT_ARM_DSP

inline void ChannelWriter::put_columns(const int8_t* bytes, int32_t step, int32_t count) {
  uint32_t a, b, c, d, last;
  asm volatile(
      "1:\n\t"
      "ldr     %[c], [%[bytes], %[step]]\n\t"
      "ldr     %[a], [%[bytes]]\n\t"
      "add     %[bytes], %[bytes], %[step], lsl #1\n\t"
      "sxtab16 %[d], %[offset], %[c], ror #8\n\t"
      "sxtab16 %[b], %[offset], %[a], ror #8\n\t"
      "sxtab16 %[c], %[offset], %[c]\n\t"
      "sxtab16 %[a], %[offset], %[a]\n\t"
      "subs    %[count], %[count], #1\n\t"
      "pkhtb   %[last], %[d], %[b], asr #16\n\t"
      "pkhbt   %[b], %[b], %[d], lsl #16\n\t"
      "pkhtb   %[d], %[c], %[a], asr #16\n\t"
      "pkhbt   %[a], %[a], %[c], lsl #16\n\t"
      "str     %[b], [%[pairs], %[stride]]\n\t"
      "add     %[b], %[pairs], %[stride]\n\t"
      "str     %[d], [%[pairs], %[stride], lsl #1]\n\t"
      "str     %[last], [%[b], %[stride], lsl #1]\n\t"
      "str     %[a], [%[pairs]], #4\n\t"
      "bne     1b\n\t"
      : [pairs] "+r"(pairs), [bytes] "+r"(bytes), [count] "+r"(count), [a] "=&r"(a), [b] "=&r"(b), [c] "=&r"(c),
        [d] "=&r"(d), [last] "=&r"(last)
      : [stride] "r"(4 * stride), [step] "r"(step), [offset] "r"(offset)
      : "cc", "memory");
}

#else

inline void ChannelWriter::put_columns(const int8_t* bytes, int32_t step, int32_t count) {
  for (int32_t i = 0; i < count; ++i, bytes += 2 * step) put(load_word(bytes), load_word(bytes + step));
}

#endif

// Some rows of four channels of an image, channel by channel, as int16 without the zero point; where
// there is padding, 0.
class Band {
 public:
  static constexpr int32_t channels = 4;

  // Outputs are made `block` at a time.
  Band(const LinearArgs& args, int32_t block)
      : args_(args),
        row_words_(row_words(args.window, args.out, block)),
        out_rows_(out_rows({OpKind::depthwise_conv2d, args.in, args.out, args.window}, block)),
        words_(static_cast<uint32_t*>(args.scratch)) {}

  static int32_t bytes(const OpShape& shape, int32_t block) {
    return in_rows(shape.window, out_rows(shape, block)) * channels * row_words(shape.window, shape.out, block) *
           word_bytes;
  }

  // Output rows that a full band is for.
  int32_t out_rows() const { return out_rows_; }

  // Lays out what output rows y .. y + rows - 1 read of channels channel .. channel + 3. Bands follow one
  // another from the first row down.
  void fill(int32_t channel, int32_t y, int32_t rows) {
    const Window& w = args_.window;
    int32_t have = 0;
    if (y > 0 && w.kernel_h > w.stride_h) {
      have = w.kernel_h - w.stride_h;
      keep_rows(out_rows_ * w.stride_h, have);
    }
    const int32_t top = y * w.stride_h - w.pad_top;
    for (int32_t r = have; r < in_rows(w, rows); ++r) fill_row(channel, top + r, words_ + r * channels * row_words_);
  }

  // A channel's first row, and the way to its next ones.
  const uint32_t* plane(int32_t channel) const { return words_ + channel * row_words_; }
  int32_t row_bytes() const { return channels * row_words_ * word_bytes; }

  // The memory after the band.
  uint32_t* end() const { return words_ + in_rows(args_.window, out_rows_) * channels * row_words_; }

 private:
  static constexpr int32_t word_bytes = static_cast<int32_t>(sizeof(uint32_t));
  static constexpr int32_t most_bytes = 4096;

  static int32_t row_words(const Window& window, const Shape& out, int32_t block) {
    return round_up(out.width, block) * window.stride_w / 2 + window.kernel_w / 2;
  }
  static int32_t in_rows(const Window& window, int32_t out_rows) {
    return (out_rows - 1) * window.stride_h + window.kernel_h;
  }
  static int32_t out_rows(const OpShape& shape, int32_t block) {
    const int32_t row_bytes = channels * row_words(shape.window, shape.out, block) * word_bytes;
    int32_t rows = 1;
    while (rows < shape.out.height && in_rows(shape.window, rows + 1) * row_bytes <= most_bytes) ++rows;
    return rows;
  }

  // Rows at the end of the last band that are the first of the next.
  void keep_rows(int32_t from, int32_t count) {
    const uint32_t* source = words_ + from * channels * row_words_;
    for (int32_t i = 0; i < count * channels * row_words_; ++i) words_[i] = source[i];
  }

  void fill_row(int32_t channel, int32_t y, uint32_t* row) const {
    if (y < 0 || y >= args_.in.height) {
      for (int32_t i = 0; i < channels * row_words_; ++i) row[i] = 0;
      return;
    }
    const int32_t width = args_.in.width, step = args_.in.channels;
    const uint32_t zeros = four_bytes(args_.input_zero);
    const int8_t* pixels = args_.input + y * width * step + channel;
    ChannelWriter writer = {row, row_words_, pair(-args_.input_zero, -args_.input_zero)};
    const uint32_t* end = row + row_words_;
    int32_t x = -args_.window.pad_left;
    for (; x < -1 && writer.pairs < end; x += 2) writer.put_zeros();
    if (x == -1 && writer.pairs < end) {
      writer.put(zeros, load_word(pixels));
      x += 2;
    }
    const int32_t inside = (width - x) / 2, room = static_cast<int32_t>(end - writer.pairs);
    const int32_t count = inside < room ? inside : room;
    if (count > 0) {
      writer.put_columns(pixels + x * step, step, count);
      x += 2 * count;
    }
    if (x == width - 1 && writer.pairs < end) writer.put(load_word(pixels + x * step), zeros);
    while (writer.pairs < end) writer.put_zeros();
  }

  const LinearArgs& args_;
  const int32_t row_words_, out_rows_;
  uint32_t* words_;
};

// Outputs side by side that are computed at once. More than a row has are computed, too, from columns
// of any content, and written where the next row's first outputs will be.
constexpr int32_t plane_block(int32_t kernel_w) { return kernel_w == 3 ? 2 : 4; }

struct Plane {
  const Pair* pairs;  // of a row's neighboring weights, row by row: (w0, w1) (w1, w2) ...
  int8_t* output;
  // From here on in the order in which the assembly keeps it in s4 .. s14.
  float scale, bias;
  int32_t zero;
  int32_t stride;        // from an output to the next
  const uint32_t* rows;  // input of the first output row
  int32_t row_bytes;     // from an input row to the next
  int32_t step_bytes;    // from an output row's input to the next one's
  int32_t out_rows;
  int32_t span_bytes;   // of input columns that a row's blocks start from
  int32_t row_outputs;  // from an output row to the next
  int32_t kernel_h;     // 3 where the kernel is 3 wide
};

// Two neighboring outputs' sums over a window's row; `pairs` as in a Plane.
template <int32_t kernel_w, int32_t stride>
inline void add_row(const uint32_t* columns, const Pair* pairs, int32_t& left, int32_t& right) {
  constexpr int32_t half = kernel_w / 2;
  if constexpr (stride == 1) {
    right = add_second_first(columns[0], pairs[0], right);
    for (int32_t k = 0; k < half; ++k) {
      left = add_products(columns[k], pairs[2 * k], left);
      right = add_products(columns[k + 1], pairs[2 * k + 1], right);
    }
  } else {
    for (int32_t k = 0; k < half; ++k) {
      left = add_products(columns[k], pairs[2 * k], left);
      right = add_products(columns[k + 1], pairs[2 * k], right);
    }
    right = add_first_second(columns[half + 1], pairs[kernel_w - 2], right);
  }
  left = add_first_second(columns[half], pairs[kernel_w - 2], left);
}

// Any clamp, any width, and nothing beyond the last output.
template <int32_t kernel_w, int32_t stride>
void convolve_exactly(const Plane& plane, const Range& range, int32_t width) {
  const uint32_t* row = plane.rows;
  const int32_t row_words = plane.row_bytes / 4;
  for (int32_t y = 0; y < plane.out_rows; ++y, row += plane.step_bytes / 4) {
    int8_t* out = plane.output + y * plane.row_outputs;
    const uint32_t* columns = row;
    for (int32_t x = 0; x < width; x += 2, columns += stride) {
      int32_t left = 0, right = 0;
      for (int32_t ky = 0; ky < plane.kernel_h; ++ky) {
        add_row<kernel_w, stride>(columns + ky * row_words, plane.pairs + ky * (kernel_w - 1), left, right);
      }
      out[x * plane.stride] = range.from(left, plane.bias, plane.scale);
      if (x + 1 < width) out[(x + 1) * plane.stride] = range.from(right, plane.bias, plane.scale);
    }
  }
}

// Requantizes to all of int8. Writes whole blocks.
template <int32_t kernel_w, int32_t stride>
void convolve_plane(const Plane& plane);

#ifdef PMT_ARM_DSP

#define PMT_REQUANTIZE(value) "  vadd.f32 " value ", " value ", s5 \n  vmul.f32 " value ", " value ", s4 \n"

// 3 x 3. Registers: r0 .. r5 pairs of weights; r6, r7 pairs of columns; r8 .. r10 the three rows; r11, r12
// the two sums; lr output. s2 is where the first row ends, s15 the output row.
#define PMT_PLANE_3(first_row, second_row, third_row) \
  asm volatile(                                                          \
      "  push   {r4-r11, lr} \n"                                         \
      "  ldmia  r0!, {r1, lr} \n"                                        \
      "  vldmia r0, {s4-s14} \n"                                         \
      "  vmov   s15, lr \n"                                              \
      "  ldmia  r1, {r0-r5} \n"                                          \
      "1:vmov   r8, r6, s8, s9 \n"                                       \
      "  vmov   lr, s15 \n"                                              \
      "  vmov   r7, s12 \n"                                              \
      "  add    r9, r8, r6 \n"                                           \
      "  add    r10, r9, r6 \n"                                          \
      "  add    r7, r7, r8 \n"                                           \
      "  vmov   s2, r7 \n"                                               \
      "2:\n" first_row second_row third_row                              \
      "  vmov   s0, s1, r11, r12 \n"                                     \
      "  vcvt.f32.s32 s0, s0 \n  vcvt.f32.s32 s1, s1 \n"                 \
      PMT_REQUANTIZE("s0") PMT_REQUANTIZE("s1")                          \
      "  vcvtr.s32.f32 s0, s0 \n  vcvtr.s32.f32 s1, s1 \n"               \
      "  vmov   r6, r7, s6, s7 \n"                                       \
      "  vmov   r11, r12, s0, s1 \n"                                     \
      "  qadd   r11, r11, r6 \n  qadd   r12, r12, r6 \n"                 \
      "  ssat   r11, #8, r11 \n  ssat   r12, #8, r12 \n"                 \
      "  strb   r11, [lr] \n"                                            \
      "  strb   r12, [lr, r7] \n"                                        \
      "  vmov   r6, s2 \n"                                               \
      "  add    lr, lr, r7, lsl #1 \n"                                   \
      "  cmp    r8, r6 \n"                                               \
      "  bne    2b \n"                                                   \
      "  vmov   r6, r7, s10, s11 \n"                                     \
      "  vmov   r8, s8 \n"                                               \
      "  vmov   r9, s13 \n"                                              \
      "  vmov   lr, s15 \n"                                              \
      "  add    r8, r8, r6 \n"                                           \
      "  add    lr, lr, r9 \n"                                           \
      "  vmov   s8, r8 \n"                                               \
      "  vmov   s15, lr \n"                                              \
      "  subs   r7, r7, #1 \n"                                           \
      "  vmov   s11, r7 \n"                                              \
      "  bne    1b \n"                                                   \
      "  pop    {r4-r11, pc} \n")

#define PMT_NEXT_ROW(row, a, b) \
  "  ldrd   r6, r7, [" row      \
  "], #4 \n"                    \
  "  smlad  r11, r6, " a        \
  ", r11 \n"                    \
  "  smlabt r11, r7, " b        \
  ", r11 \n"                    \
  "  smlatb r12, r6, " a        \
  ", r12 \n"                    \
  "  smlad  r12, r7, " b ", r12 \n"

template <>
__attribute__((naked, noinline)) inline void convolve_plane<3, 1>(const Plane&) {
  PMT_PLANE_3(
      "  ldrd   r6, r7, [r8], #4 \n"
      "  smuad  r11, r6, r0 \n"
      "  smlabt r11, r7, r1, r11 \n"
      "  smultb r12, r6, r0 \n"
      "  smlad  r12, r7, r1, r12 \n",
      PMT_NEXT_ROW("r9", "r2", "r3"), PMT_NEXT_ROW("r10", "r4", "r5"));
}

#undef PMT_NEXT_ROW
#define PMT_NEXT_ROW(row, a, b) \
  "  ldrd   r6, r7, [" row      \
  "], #8 \n"                    \
  "  smlad  r11, r6, " a        \
  ", r11 \n"                    \
  "  smlabt r11, r7, " b        \
  ", r11 \n"                    \
  "  ldr    r6, [" row          \
  "] \n"                        \
  "  smlad  r12, r7, " a        \
  ", r12 \n"                    \
  "  smlabt r12, r6, " b ", r12 \n"

template <>
__attribute__((naked, noinline)) inline void convolve_plane<3, 2>(const Plane&) {
  PMT_PLANE_3(
      "  ldrd   r6, r7, [r8], #8 \n"
      "  smuad  r11, r6, r0 \n"
      "  smlabt r11, r7, r1, r11 \n"
      "  ldr    r6, [r8] \n"
      "  smuad  r12, r7, r0 \n"
      "  smlabt r12, r6, r1, r12 \n",
      PMT_NEXT_ROW("r9", "r2", "r3"), PMT_NEXT_ROW("r10", "r4", "r5"));
}

#undef PMT_NEXT_ROW
#undef PMT_PLANE_3

// 5 or 7 wide. Registers: r0 .. r3 sums of four outputs; r4 .. r10 pairs of columns and of weights; r11
// columns, r12 weights, lr rows left of the window. s16 is the first pair of weights, s17 the output, s18
// the columns of the block, s19 where the row's blocks end, s15 the output row.
#define PMT_PLANE(next_block, row) \
  asm volatile(                                                                     \
      "  push   {r4-r11, lr} \n"                                                    \
      "  vpush  {d8-d9} \n"                                                         \
      "  ldmia  r0!, {r1, r2} \n"                                                   \
      "  vldmia r0, {s4-s14} \n"                                                    \
      "  vmov   s16, r1 \n"                                                         \
      "  vmov   s15, r2 \n"                                                         \
      "1:vmov   r11, s8 \n"                                                         \
      "  vmov   r4, s12 \n"                                                         \
      "  vmov   s17, s15 \n"                                                        \
      "  add    r4, r4, r11 \n"                                                     \
      "  vmov   s18, s19, r11, r4 \n"                                               \
      "2:vmov   r12, s16 \n"                                                        \
      "  vmov   lr, s14 \n"                                                         \
      "  mov    r0, #0 \n  mov    r1, #0 \n  mov    r2, #0 \n  mov    r3, #0 \n"    \
      "3:\n" row                                                                    \
      "  vmov   r10, s9 \n"                                                         \
      "  subs   lr, lr, #1 \n"                                                      \
      "  add    r11, r11, r10 \n"                                                   \
      "  bne    3b \n"                                                              \
      "  vmov   s0, s1, r0, r1 \n"                                                  \
      "  vmov   s2, s3, r2, r3 \n"                                                  \
      "  vcvt.f32.s32 s0, s0 \n  vcvt.f32.s32 s1, s1 \n"                            \
      "  vcvt.f32.s32 s2, s2 \n  vcvt.f32.s32 s3, s3 \n"                            \
      PMT_REQUANTIZE("s0") PMT_REQUANTIZE("s1") PMT_REQUANTIZE("s2") PMT_REQUANTIZE("s3") \
      "  vcvtr.s32.f32 s0, s0 \n  vcvtr.s32.f32 s1, s1 \n"                          \
      "  vcvtr.s32.f32 s2, s2 \n  vcvtr.s32.f32 s3, s3 \n"                          \
      "  vmov   r4, r5, s6, s7 \n"                                                  \
      "  vmov   r0, r1, s0, s1 \n"                                                  \
      "  vmov   r2, r3, s2, s3 \n"                                                  \
      "  vmov   r6, s17 \n"                                                         \
      "  vmov   r11, r8, s18, s19 \n"                                               \
      "  qadd   r0, r0, r4 \n  qadd   r1, r1, r4 \n"                                \
      "  qadd   r2, r2, r4 \n  qadd   r3, r3, r4 \n"                                \
      "  ssat   r0, #8, r0 \n  ssat   r1, #8, r1 \n"                                \
      "  ssat   r2, #8, r2 \n  ssat   r3, #8, r3 \n"                                \
      "  add    r7, r6, r5 \n"                                                      \
      "  strb   r0, [r6] \n"                                                        \
      "  strb   r1, [r6, r5] \n"                                                    \
      "  strb   r2, [r6, r5, lsl #1] \n"                                            \
      "  strb   r3, [r7, r5, lsl #1] \n"                                            \
      "  add    r6, r6, r5, lsl #2 \n"                                              \
      "  add    r11, r11, #" next_block " \n"                                       \
      "  vmov   s17, s18, r6, r11 \n"                                               \
      "  cmp    r11, r8 \n"                                                         \
      "  bne    2b \n"                                                              \
      "  vmov   r4, r5, s10, s11 \n"                                                \
      "  vmov   r6, s8 \n"                                                          \
      "  vmov   r7, s13 \n"                                                         \
      "  vmov   r8, s15 \n"                                                         \
      "  add    r6, r6, r4 \n"                                                      \
      "  add    r8, r8, r7 \n"                                                      \
      "  vmov   s8, r6 \n"                                                          \
      "  vmov   s15, r8 \n"                                                         \
      "  subs   r5, r5, #1 \n"                                                      \
      "  vmov   s11, r5 \n"                                                         \
      "  bne    1b \n"                                                              \
      "  vpop   {d8-d9} \n"                                                         \
      "  pop    {r4-r11, pc} \n")

template <>
__attribute__((naked, noinline)) inline void convolve_plane<5, 1>(const Plane&) {
  PMT_PLANE("8",
            "  ldrd   r9, r10, [r12], #8 \n"
            "  ldrd   r4, r5, [r11] \n"
            "  ldrd   r6, r7, [r11, #8] \n"
            "  smlad  r0, r4, r9, r0 \n  smlatb r1, r4, r9, r1 \n  smlad  r1, r5, r10, r1 \n"
            "  smlad  r2, r5, r9, r2 \n  smlatb r3, r5, r9, r3 \n  smlad  r3, r6, r10, r3 \n"
            "  ldrd   r9, r10, [r12], #8 \n"
            "  smlad  r0, r5, r9, r0 \n  smlabt r0, r6, r10, r0 \n  smlad  r1, r6, r10, r1 \n"
            "  smlad  r2, r6, r9, r2 \n  smlabt r2, r7, r10, r2 \n  smlad  r3, r7, r10, r3 \n");
}

template <>
__attribute__((naked, noinline)) inline void convolve_plane<7, 1>(const Plane&) {
  PMT_PLANE("8",
            "  ldrd   r9, r10, [r12], #8 \n"
            "  ldrd   r4, r5, [r11] \n"
            "  ldrd   r6, r7, [r11, #8] \n"
            "  ldr    r8, [r11, #16] \n"
            "  smlad  r0, r4, r9, r0 \n  smlatb r1, r4, r9, r1 \n  smlad  r1, r5, r10, r1 \n"
            "  smlad  r2, r5, r9, r2 \n  smlatb r3, r5, r9, r3 \n  smlad  r3, r6, r10, r3 \n"
            "  ldrd   r9, r10, [r12], #8 \n"
            "  smlad  r0, r5, r9, r0 \n  smlad  r1, r6, r10, r1 \n"
            "  smlad  r2, r6, r9, r2 \n  smlad  r3, r7, r10, r3 \n"
            "  ldrd   r9, r10, [r12], #8 \n"
            "  smlad  r0, r6, r9, r0 \n  smlabt r0, r7, r10, r0 \n  smlad  r1, r7, r10, r1 \n"
            "  smlad  r2, r7, r9, r2 \n  smlabt r2, r8, r10, r2 \n  smlad  r3, r8, r10, r3 \n");
}

template <>
__attribute__((naked, noinline)) inline void convolve_plane<5, 2>(const Plane&) {
  PMT_PLANE("16",
            "  ldmia  r12!, {r4-r7} \n"
            "  ldrd   r8, r9, [r11] \n"
            "  smlad  r0, r8, r4, r0 \n  smlad  r0, r9, r6, r0 \n  smlad  r1, r9, r4, r1 \n"
            "  ldrd   r8, r9, [r11, #8] \n"
            "  smlabt r0, r8, r7, r0 \n  smlad  r1, r8, r6, r1 \n  smlad  r2, r8, r4, r2 \n"
            "  smlabt r1, r9, r7, r1 \n  smlad  r2, r9, r6, r2 \n  smlad  r3, r9, r4, r3 \n"
            "  ldrd   r8, r9, [r11, #16] \n"
            "  smlabt r2, r8, r7, r2 \n  smlad  r3, r8, r6, r3 \n  smlabt r3, r9, r7, r3 \n");
}

template <>
__attribute__((naked, noinline)) inline void convolve_plane<7, 2>(const Plane&) {
  PMT_PLANE("16",
            "  ldmia  r12!, {r4-r9} \n"
            "  ldrd   r5, r7, [r11] \n"
            "  smlad  r0, r5, r4, r0 \n  smlad  r0, r7, r6, r0 \n  smlad  r1, r7, r4, r1 \n"
            "  ldrd   r5, r7, [r11, #8] \n"
            "  smlad  r0, r5, r8, r0 \n  smlad  r1, r5, r6, r1 \n  smlad  r2, r5, r4, r2 \n"
            "  smlabt r0, r7, r9, r0 \n  smlad  r1, r7, r8, r1 \n  smlad  r2, r7, r6, r2 \n"
            "  smlad  r3, r7, r4, r3 \n"
            "  ldrd   r5, r7, [r11, #16] \n"
            "  smlabt r1, r5, r9, r1 \n  smlad  r2, r5, r8, r2 \n  smlad  r3, r5, r6, r3 \n"
            "  smlabt r2, r7, r9, r2 \n  smlad  r3, r7, r8, r3 \n"
            "  ldr    r5, [r11, #24] \n"
            "  smlabt r3, r5, r9, r3 \n");
}

#undef PMT_PLANE
#undef PMT_REQUANTIZE

#else

template <int32_t kernel_w, int32_t stride>
void convolve_plane(const Plane& plane) {
  convolve_exactly<kernel_w, stride>(plane, {plane.zero, -128, 127}, plane.span_bytes / (2 * stride));
}

#endif

}  // namespace pmt::dsp
