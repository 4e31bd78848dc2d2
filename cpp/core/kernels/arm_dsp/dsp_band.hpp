// Some rows of four channels of an image, channel by channel, as int16 without the zero point; where
// there is padding, 0.
#pragma once

#include "core/base/arithmetic.hpp"
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

}  // namespace pmt::dsp
