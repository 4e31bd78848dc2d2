#include "core/base/arithmetic.hpp"
#include "core/input/filters.hpp"

namespace pmt {
namespace {

struct Channel {
  const Frame& frame;
  int32_t index;

  int64_t count() const { return static_cast<int64_t>(frame.height) * frame.width; }
  uint8_t& operator[](int64_t i) const { return frame.pixels[i * frame.channels + index]; }
};

void apply(const uint8_t* table, const Channel& channel) {
  for (int64_t i = 0; i < channel.count(); ++i) channel[i] = table[channel[i]];
}

uint8_t pixel_of(int64_t value) { return static_cast<uint8_t>(clamp(static_cast<int32_t>(value), 0, 255)); }

int64_t square_root(int64_t value) {
  int64_t root = 0;
  for (int64_t bit = int64_t{1} << 16; bit != 0; bit >>= 1) {
    if ((root + bit) * (root + bit) <= value) root += bit;
  }
  return root;
}

struct Moments {
  int64_t mean, deviation;  // in 1/256 of a level
};

Moments moments_of(const Channel& channel) {
  const int64_t count = channel.count();
  if (count < 1) return {0, 0};
  int64_t sum = 0, squares = 0;
  for (int64_t i = 0; i < count; ++i) {
    sum += channel[i];
    squares += channel[i] * channel[i];
  }
  // All products fit: the largest frame has 2^24 pixels a channel.
  const int64_t mean = divide_rounded(sum << 8, count);
  const int64_t variance = ((squares << 16) - sum * divide_rounded(sum << 16, count)) / count;
  return {mean, square_root(variance > 0 ? variance : 0)};
}

}  // namespace

void standardization(const Frame& frame, int32_t deviation) {
  for (int32_t c = 0; c < frame.channels; ++c) {
    const Channel channel = {frame, c};
    const Moments found = moments_of(channel);
    if (found.deviation < 256) continue;  // less than a level: nothing to see
    uint8_t table[pixel_values];
    for (int64_t pixel = 0; pixel < pixel_values; ++pixel) {
      const int64_t away = divide_rounded(((pixel << 8) - found.mean) * deviation * 256, found.deviation);
      table[pixel] = pixel_of((found.mean + away + 128) >> 8);
    }
    apply(table, channel);
  }
}

void tone_curve(const Frame& frame, int32_t bend) {
  uint8_t table[pixel_values];
  for (int64_t pixel = 0; pixel < pixel_values; ++pixel) {
    table[pixel] = pixel_of(pixel + divide_rounded(bend * pixel * (255 - pixel), 16 * 255));
  }
  for (int32_t c = 0; c < frame.channels; ++c) apply(table, {frame, c});
}

}  // namespace pmt
