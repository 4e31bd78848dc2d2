#include "core/learn/shifted_view.hpp"

#include "core/base/arithmetic.hpp"

namespace pmt {
namespace {

constexpr int32_t shifts = 32;  // of which one is the part of a side that a view is shifted by

int32_t step_of(int32_t side) { return larger(1, (side + shifts / 2) / shifts); }

}  // namespace

// Pixels are written in the order that reads each before it is overwritten.
void shift_image(const TensorRecord& shape, int32_t view, int8_t* image) {
  if (view == 0) return;
  const int32_t height = shape.height, width = shape.width, channels = shape.channels;
  const int32_t sign = view == 1 ? -1 : 1, down = sign * step_of(height), right = sign * step_of(width);
  const auto pixel = [&](int32_t y, int32_t x) { return image + (int64_t{y} * width + x) * channels; };
  for (int32_t i = 0; i < height * width; ++i) {
    const int32_t at = view == 1 ? height * width - 1 - i : i;
    const int32_t y = at / width, x = at % width;
    const int8_t* from = pixel(clamp(y + down, 0, height - 1), clamp(x + right, 0, width - 1));
    int8_t* const to = pixel(y, x);
    for (int32_t c = 0; c < channels; ++c) to[c] = from[c];
  }
}

}  // namespace pmt
