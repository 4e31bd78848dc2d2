#include "core/input/resampling.hpp"

#include "core/base/arithmetic.hpp"
#include "core/image/image_format.hpp"

namespace pmt {
namespace {

constexpr int32_t weight_bits = 22;

// The pixels of one axis that an output pixel is made of.
struct Taps {
  int32_t first, count;
};

int32_t most_taps(int32_t from, int32_t to) { return 2 * ((larger(from, to) + to - 1) / to) + 1; }

// Rows or columns up to the last one that an output pixel is made of.
int32_t end_of_taps(int32_t from, int32_t to, int32_t place) {
  const int32_t reach = 2 * larger(from, to), center = (2 * place + 1) * from;
  return smaller((center + reach + to) / (2 * to), from);
}

// Places are in units of 1 / (2 to) of a pixel, in which all are whole.
Taps find_taps(int32_t from, int32_t to, int32_t place, int32_t* weights) {
  const int32_t pixel = 2 * to, reach = 2 * larger(from, to), center = (2 * place + 1) * from;
  const int32_t first = larger(center - reach + to, 0) / pixel;
  const int32_t end = end_of_taps(from, to, place);
  int64_t sum = 0;
  for (int32_t i = first; i < end; ++i) {
    const int32_t away = i * pixel + to - center;
    weights[i - first] = larger(reach - (away < 0 ? -away : away), 0);
    sum += weights[i - first];
  }
  if (sum == 0) return {first, 0};  // there is no such pixel
  for (int32_t i = 0; i < end - first; ++i) {
    weights[i] = static_cast<int32_t>(((static_cast<int64_t>(weights[i]) << (weight_bits + 1)) + sum) / (2 * sum));
  }
  return {first, end - first};
}

uint8_t pixel_of(int32_t sum) {
  return static_cast<uint8_t>(clamp((sum + (1 << (weight_bits - 1))) >> weight_bits, 0, 255));
}

struct Layout {
  int32_t column_taps, row_taps, row_bytes;  // row_bytes: of a row as wide as the input
};

Layout layout_of(const Frame& frame, const InputSize& to) {
  return {most_taps(frame.width, to.width), most_taps(frame.height, to.height), to.width * frame.channels};
}

// Words of the scratch memory: the weights of both axes, and a row of sums.
int64_t word_count(const Layout& layout, const InputSize& to) {
  return static_cast<int64_t>(to.width) * layout.column_taps + layout.row_taps + layout.row_bytes;
}

struct Columns {
  const Taps* taps;
  const int32_t* weights;  // `stride` a column
  int32_t stride, count;
};

void resample_row(const Frame& frame, int32_t y, const Columns& columns, uint8_t* out) {
  const int32_t channels = frame.channels;
  for (int32_t x = 0; x < columns.count; ++x) {
    const Taps taps = columns.taps[x];
    const int32_t* weights = columns.weights + static_cast<int64_t>(x) * columns.stride;
    const uint8_t* pixels = frame.row(y) + taps.first * channels;
    for (int32_t c = 0; c < channels; ++c) {
      int32_t sum = 0;
      for (int32_t i = 0; i < taps.count; ++i) sum += weights[i] * pixels[i * channels + c];
      *out++ = pixel_of(sum);
    }
  }
}

void write_row(const int32_t* sums, int32_t width, int32_t channels, const int8_t* table, int8_t* input) {
  for (int32_t x = 0; x < width; ++x) {
    for (int32_t c = 0; c < channels; ++c) *input++ = table[c * pixel_values + pixel_of(*sums++)];
  }
}

}  // namespace

int64_t resample_bytes(const Frame& frame, const InputSize& to) {
  const Layout layout = layout_of(frame, to);
  return to.width * static_cast<int64_t>(sizeof(Taps)) + word_count(layout, to) * 4 +
         static_cast<int64_t>(layout.row_taps) * layout.row_bytes;
}

int64_t frame_lead(const Frame& frame, const InputSize& to) {
  const int64_t row = static_cast<int64_t>(to.width) * frame.channels;
  int64_t lead = 0;
  for (int32_t y = 0; y < to.height; ++y) {
    const int64_t read = static_cast<int64_t>(end_of_taps(frame.height, to.height, y)) * frame.row_bytes();
    const int64_t ahead = (y + 1) * row - read;
    lead = lead < ahead ? ahead : lead;
  }
  return lead;
}

void resample(const Frame& frame, const InputSize& to, const int8_t* table, uint8_t* scratch, int8_t* input) {
  const Layout layout = layout_of(frame, to);
  auto* taps = reinterpret_cast<Taps*>(scratch);
  auto* weights = reinterpret_cast<int32_t*>(taps + to.width);
  int32_t* row_weights = weights + static_cast<int64_t>(to.width) * layout.column_taps;
  int32_t* sums = row_weights + layout.row_taps;
  auto* rows = reinterpret_cast<uint8_t*>(sums + layout.row_bytes);  // a ring, row y in place y % row_taps
  for (int32_t x = 0; x < to.width; ++x) {
    taps[x] = find_taps(frame.width, to.width, x, weights + static_cast<int64_t>(x) * layout.column_taps);
  }
  const Columns columns = {taps, weights, layout.column_taps, to.width};
  int32_t ready = 0;
  for (int32_t y = 0; y < to.height; ++y) {
    const Taps found = find_taps(frame.height, to.height, y, row_weights);
    for (; ready < found.first + found.count; ++ready) {
      resample_row(frame, ready, columns, rows + ready % layout.row_taps * layout.row_bytes);
    }
    for (int32_t i = 0; i < layout.row_bytes; ++i) sums[i] = 0;
    for (int32_t k = 0; k < found.count; ++k) {
      const uint8_t* row = rows + (found.first + k) % layout.row_taps * layout.row_bytes;
      for (int32_t i = 0; i < layout.row_bytes; ++i) sums[i] += row_weights[k] * row[i];
    }
    write_row(sums, to.width, frame.channels, table, input + static_cast<int64_t>(y) * layout.row_bytes);
  }
}

}  // namespace pmt
