#include "core/base/arithmetic.hpp"
#include "core/kernels/images.hpp"
#include "core/kernels/portable/portable.hpp"

namespace pmt::portable {
namespace {

struct Span {
  int32_t begin, end;
};

// The part of a pooling window that lies inside the input.
Span inside(int32_t position, int32_t stride, int32_t padding, int32_t kernel, int32_t size) {
  const int32_t start = position * stride - padding;
  return {start < 0 ? 0 : start, start + kernel > size ? size : start + kernel};
}

int32_t channel_sum(const PoolArgs& args, const Span& rows, const Span& columns, int32_t channel) {
  int32_t sum = 0;
  for (int32_t y = rows.begin; y < rows.end; ++y) {
    for (int32_t x = columns.begin; x < columns.end; ++x) {
      sum += args.input[(y * args.in.width + x) * args.in.channels + channel];
    }
  }
  return sum;
}

int8_t channel_maximum(const PoolArgs& args, const Span& rows, const Span& columns, int32_t channel) {
  int8_t largest = -128;
  for (int32_t y = rows.begin; y < rows.end; ++y) {
    for (int32_t x = columns.begin; x < columns.end; ++x) {
      const int8_t value = args.input[(y * args.in.width + x) * args.in.channels + channel];
      largest = value > largest ? value : largest;
    }
  }
  return largest;
}

template <typename Reduce>
void pool_image(const PoolArgs& args, Reduce reduce) {
  const Window& w = args.window;
  int8_t* out = args.output;
  for (int32_t y = 0; y < args.out.height; ++y) {
    const Span rows = inside(y, w.stride_h, w.pad_top, w.kernel_h, args.in.height);
    for (int32_t x = 0; x < args.out.width; ++x) {
      const Span columns = inside(x, w.stride_w, w.pad_left, w.kernel_w, args.in.width);
      for (int32_t c = 0; c < args.out.channels; ++c) {
        *out++ = static_cast<int8_t>(clamp(reduce(rows, columns, c), args.clamp_min, args.clamp_max));
      }
    }
  }
}

template <typename Reduce>
void pool(const PoolArgs& args, Reduce reduce) {
  for_each_image(args, [&](const PoolArgs& image) {
    pool_image(image,
               [&](const Span& rows, const Span& columns, int32_t c) { return reduce(image, rows, columns, c); });
  });
}

float average(int32_t sum, const Span& rows, const Span& columns) {
  const int32_t count = (rows.end - rows.begin) * (columns.end - columns.begin);
  return static_cast<float>(sum) / static_cast<float>(count);
}

void mean_image(const PoolArgs& args) {
  const Span rows = {0, args.in.height}, columns = {0, args.in.width};
  for (int32_t c = 0; c < args.out.channels; ++c) {
    const float value = average(channel_sum(args, rows, columns, c), rows, columns);
    const int32_t rounded =
        args.same_quantization
            ? round_half_even(value)
            : round_saturating((value - static_cast<float>(args.input_zero)) * args.ratio) + args.output_zero;
    args.output[c] = static_cast<int8_t>(clamp(rounded, args.clamp_min, args.clamp_max));
  }
}

}  // namespace

void average_pool(const PoolArgs& args) {
  pool(args, [](const PoolArgs& image, const Span& rows, const Span& columns, int32_t c) {
    return round_half_even(average(channel_sum(image, rows, columns, c), rows, columns));
  });
}

void max_pool(const PoolArgs& args) {
  pool(args, [](const PoolArgs& image, const Span& rows, const Span& columns, int32_t c) {
    return static_cast<int32_t>(channel_maximum(image, rows, columns, c));
  });
}

void mean(const PoolArgs& args) { for_each_image(args, mean_image); }

}  // namespace pmt::portable
