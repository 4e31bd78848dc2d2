#include "core/base/arithmetic.hpp"
#include "core/input/filters.hpp"

namespace pmt {
namespace {

constexpr int32_t size = shrinkage_block;

// Rows are orthogonal, with these squared norms.
constexpr int32_t basis[size][size] = {{1, 1, 1, 1}, {2, 1, -1, -2}, {1, -1, -1, 1}, {1, -2, 2, -1}};
constexpr int32_t norm[size] = {4, 10, 4, 10};

// Luminance, red less blue, and green against both, with their squared norms.
constexpr int32_t color[3][3] = {{1, 1, 1}, {1, 0, -1}, {1, -2, 1}};
constexpr int32_t color_norm[3] = {3, 2, 6};

// Coefficients return as this multiple of what is orthonormal, in whole numbers.
constexpr int32_t unit = 400;        // of the norms of rows and columns
constexpr int32_t color_unit = 6;    // of those of colors
constexpr int32_t middle_gray = 128;

struct Planes {
  bool is_color;
  int32_t count, scale;  // scale: what a block's sums are multiples of

  int32_t norm_of(int32_t plane) const { return is_color ? color_norm[plane] : 1; }
};

Planes planes_of(const Frame& frame) {
  if (frame.channels == 3) return {true, 3, unit * color_unit};
  return {false, frame.channels, unit};
}

struct Lines {
  int32_t* sums[size];  // of the rows that blocks reach, a ring, planes one after another
  int32_t* columns;     // one coefficient of every column of a row of blocks
  int32_t* shrunk;      // the same, of all blocks that cover it
  int32_t* kept;        // one coefficient of every block
  float* thresholds;    // squared and in the sums' scale, of every block
};

Lines lines_of(const Frame& frame, uint8_t* scratch) {
  const int32_t line = frame.width, all = frame.width * frame.channels;
  auto* memory = reinterpret_cast<int32_t*>(scratch);
  Lines lines = {};
  for (int32_t i = 0; i < size; ++i) lines.sums[i] = memory + i * all;
  lines.columns = memory + size * all;
  lines.shrunk = lines.columns + line;
  lines.kept = lines.shrunk + line;
  lines.thresholds = reinterpret_cast<float*>(lines.kept + line);
  return lines;
}

int32_t plane_value(const Planes& planes, const uint8_t* pixel, int32_t plane) {
  if (!planes.is_color) return pixel[plane];
  return color[plane][0] * pixel[0] + color[plane][1] * pixel[1] + color[plane][2] * pixel[2];
}

// Coefficient k of every column of four rows.
void transform_columns(const Frame& frame, const Planes& planes, int32_t y, int32_t plane, int32_t k, int32_t* out) {
  for (int32_t x = 0; x < frame.width; ++x) out[x] = 0;
  for (int32_t i = 0; i < size; ++i) {
    const uint8_t* row = frame.row(y + i);
    for (int32_t x = 0; x < frame.width; ++x) {
      out[x] += basis[k][i] * plane_value(planes, row + x * frame.channels, plane);
    }
  }
}

int32_t coefficient(const int32_t* columns, int32_t j) {
  return basis[j][0] * columns[0] + basis[j][1] * columns[1] + basis[j][2] * columns[2] + basis[j][3] * columns[3];
}

// t^2 of every block from the sums of its columns, at a mean of 128 `threshold`^2.
void find_thresholds(const Planes& planes, const int32_t* columns, int32_t blocks, int32_t threshold, NoiseModel noise,
                     float* out) {
  const auto at_gray = static_cast<float>(planes.scale * threshold * threshold);
  const float gray = 1.0f / static_cast<float>(size * size * middle_gray * planes.norm_of(0));
  for (int32_t x = 0; x < blocks; ++x) {
    const float mean = static_cast<float>(coefficient(columns + x, 0)) * gray;
    const float once = noise == NoiseModel::constant ? 1.0f : mean;
    const float twice = noise == NoiseModel::proportional ? mean : 1.0f;
    out[x] = at_gray * once * twice;
  }
}

// m c - T / c where that does not pass zero; m c is the coefficient in the sums' scale, T the squared threshold.
int32_t shrunk(int32_t value, int32_t multiple, float threshold) {
  const auto scaled = static_cast<float>(value * multiple);
  const auto whole = static_cast<float>(value);
  const float safe = value == 0 ? 1.0f : whole;
  const float less = scaled - threshold / safe;
  const bool stays = scaled * whole > threshold;
  return stays ? static_cast<int32_t>(less) : 0;
}

// Shrinks coefficients (k, 0..3) of every block, and adds what they are in their columns.
void shrink_blocks(const Lines& lines, int32_t blocks, int32_t k, int32_t multiple_of_norm) {
  for (int32_t j = 0; j < size; ++j) {
    const int32_t multiple = multiple_of_norm / norm[j];
    const bool is_mean = k == 0 && j == 0;
    for (int32_t x = 0; x < blocks; ++x) {
      const int32_t value = coefficient(lines.columns + x, j);
      lines.kept[x] = is_mean ? value * multiple : shrunk(value, multiple, lines.thresholds[x]);
    }
    for (int32_t i = 0; i < size; ++i) {
      for (int32_t x = 0; x < blocks; ++x) lines.shrunk[x + i] += basis[j][i] * lines.kept[x];
    }
  }
}

void add_blocks(const Frame& frame, const Planes& planes, int32_t y, int32_t threshold, NoiseModel noise,
                const Lines& lines) {
  const int32_t width = frame.width, blocks = width - size + 1;
  for (int32_t plane = 0; plane < planes.count; ++plane) {
    for (int32_t k = 0; k < size; ++k) {
      transform_columns(frame, planes, y, plane, k, lines.columns);
      if (k == 0 && (plane == 0 || !planes.is_color)) {
        find_thresholds(planes, lines.columns, blocks, threshold, noise, lines.thresholds);
      }
      for (int32_t x = 0; x < width; ++x) lines.shrunk[x] = 0;
      shrink_blocks(lines, blocks, k, planes.scale / (norm[k] * planes.norm_of(plane)));
      for (int32_t i = 0; i < size; ++i) {
        int32_t* sums = lines.sums[(y + i) % size] + plane * width;
        for (int32_t x = 0; x < width; ++x) sums[x] += basis[k][i] * lines.shrunk[x];
      }
    }
  }
}

// Blocks that cover a place.
int32_t cover(int32_t place, int32_t length) {
  const int32_t first = larger(place - size + 1, 0), last = smaller(place, length - size);
  return last - first + 1;
}

uint8_t mean_of_blocks(int32_t sum, int32_t divisor) {
  return static_cast<uint8_t>(clamp((larger(sum, 0) + divisor / 2) / divisor, 0, 255));
}

void write_row(const Frame& frame, const Planes& planes, int32_t y, const int32_t* sums) {
  uint8_t* out = frame.row(y);
  const int32_t width = frame.width, rows = cover(y, frame.height) * planes.scale;
  for (int32_t x = 0; x < width; ++x) {
    const int32_t divisor = rows * cover(x, width);
    for (int32_t c = 0; c < frame.channels; ++c) {
      int32_t sum = sums[c * width + x];
      if (planes.is_color) {
        sum = color[0][c] * sums[x] + color[1][c] * sums[width + x] + color[2][c] * sums[2 * width + x];
      }
      *out++ = mean_of_blocks(sum, divisor);
    }
  }
}

}  // namespace

int64_t dct_shrinkage_bytes(const Frame& frame) {
  return (static_cast<int64_t>(size) * frame.channels + 4) * frame.width * 4;
}

void dct_shrinkage(const Frame& frame, int32_t threshold, NoiseModel noise, uint8_t* scratch) {
  const Planes planes = planes_of(frame);
  const Lines lines = lines_of(frame, scratch);
  const int32_t all = frame.width * frame.channels;
  for (int32_t i = 0; i < size * all; ++i) lines.sums[0][i] = 0;
  for (int32_t y = 0; y < frame.height; ++y) {
    if (y + size <= frame.height) add_blocks(frame, planes, y, threshold, noise, lines);
    int32_t* sums = lines.sums[y % size];
    write_row(frame, planes, y, sums);
    for (int32_t i = 0; i < all; ++i) sums[i] = 0;
  }
}

}  // namespace pmt
