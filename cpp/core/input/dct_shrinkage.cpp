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
constexpr int32_t unit = 400;      // of the norms of rows and columns
constexpr int32_t color_unit = 6;  // of those of colors
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
  int32_t* rows;        // of a row of blocks in one plane
  int32_t* columns;     // one coefficient of every column of a row of blocks
  int32_t* shrunk;      // the same, of all blocks that cover it
  int32_t* kept[size];  // the same of every block, by its column
  float* thresholds;    // squared and in the sums' scale, of every block
};

Lines lines_of(const Frame& frame, uint8_t* scratch) {
  const int32_t line = frame.width, all = frame.width * frame.channels;
  auto* memory = reinterpret_cast<int32_t*>(scratch);
  Lines lines = {};
  for (int32_t i = 0; i < size; ++i) lines.sums[i] = memory + i * all;
  lines.rows = memory + size * all;
  lines.columns = lines.rows + size * line;
  lines.shrunk = lines.columns + line;
  for (int32_t i = 0; i < size; ++i) lines.kept[i] = lines.shrunk + (1 + i) * line;
  lines.thresholds = reinterpret_cast<float*>(lines.shrunk + (1 + size) * line);
  return lines;
}

// A row of one plane.
void write_plane(const Frame& frame, const Planes& planes, int32_t y, int32_t plane, int32_t* out) {
  const uint8_t* row = frame.row(y);
  if (!planes.is_color) {
    for (int32_t x = 0; x < frame.width; ++x) out[x] = row[x * frame.channels + plane];
    return;
  }
  const int32_t red = color[plane][0], green = color[plane][1], blue = color[plane][2];
  for (int32_t x = 0; x < frame.width; ++x) out[x] = red * row[3 * x] + green * row[3 * x + 1] + blue * row[3 * x + 2];
}

// Coefficient k of four values, `step` apart.
template <int32_t k>
int32_t coefficient(const int32_t* values, int32_t step = 1) {
  const int32_t outer = values[0] + (k % 2 == 0 ? 1 : -1) * values[3 * step];
  const int32_t inner = values[step] + (k % 2 == 0 ? 1 : -1) * values[2 * step];
  return basis[k][0] * outer + basis[k][1] * inner;
}

// Coefficient k of every column of four rows.
template <int32_t k>
void transform_columns(const int32_t* rows, int32_t width, int32_t* out) {
  for (int32_t x = 0; x < width; ++x) out[x] = coefficient<k>(rows + x, width);
}

// t^2 of every block from the sums of its columns, at a mean of 128 `threshold`^2.
void find_thresholds(const Planes& planes, const int32_t* columns, int32_t blocks, int32_t threshold, NoiseModel noise,
                     float* out) {
  const auto at_gray = static_cast<float>(planes.scale * threshold * threshold);
  const float gray = 1.0f / static_cast<float>(size * size * middle_gray * planes.norm_of(0));
  for (int32_t x = 0; x < blocks; ++x) {
    const float mean = static_cast<float>(coefficient<0>(columns + x)) * gray;
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

// Shrinks coefficients (k, 0..3) of every block, and adds what they are in the block's columns. `multiple`: of (k, 0)
// by its norm.
template <bool holds_mean>
void shrink_blocks(const Lines& lines, int32_t blocks, int32_t multiple) {
  const int32_t even = multiple / norm[0], odd = multiple / norm[1];
  for (int32_t x = 0; x < blocks; ++x) {
    const int32_t* columns = lines.columns + x;
    const float threshold = lines.thresholds[x];
    const int32_t first = coefficient<0>(columns);
    const int32_t c0 = holds_mean ? first * even : shrunk(first, even, threshold);
    const int32_t c1 = shrunk(coefficient<1>(columns), odd, threshold);
    const int32_t c2 = shrunk(coefficient<2>(columns), even, threshold);
    const int32_t c3 = shrunk(coefficient<3>(columns), odd, threshold);
    lines.kept[0][x] = c0 + 2 * c1 + c2 + c3;
    lines.kept[1][x] = c0 + c1 - c2 - 2 * c3;
    lines.kept[2][x] = c0 - c1 - c2 + 2 * c3;
    lines.kept[3][x] = c0 - 2 * c1 + c2 - c3;
  }
  for (int32_t i = 0; i < size; ++i) {
    for (int32_t x = 0; x < blocks; ++x) lines.shrunk[x + i] += lines.kept[i][x];
  }
}

struct Step {
  const Frame& frame;
  const Planes& planes;
  const Lines& lines;
  int32_t y, plane, threshold;
  NoiseModel noise;
};

// Coefficients (k, 0..3) of a row of blocks, in one plane.
template <int32_t k>
void add_coefficients(const Step& step) {
  const Lines& lines = step.lines;
  const int32_t width = step.frame.width, blocks = width - size + 1;
  transform_columns<k>(lines.rows, width, lines.columns);
  if (k == 0 && (step.plane == 0 || !step.planes.is_color)) {
    find_thresholds(step.planes, lines.columns, blocks, step.threshold, step.noise, lines.thresholds);
  }
  for (int32_t x = 0; x < width; ++x) lines.shrunk[x] = 0;
  shrink_blocks<k == 0>(lines, blocks, step.planes.scale / (norm[k] * step.planes.norm_of(step.plane)));
  for (int32_t i = 0; i < size; ++i) {
    int32_t* sums = lines.sums[(step.y + i) % size] + step.plane * width;
    for (int32_t x = 0; x < width; ++x) sums[x] += basis[k][i] * lines.shrunk[x];
  }
}

void add_blocks(Step step) {
  for (step.plane = 0; step.plane < step.planes.count; ++step.plane) {
    for (int32_t i = 0; i < size; ++i) {
      write_plane(step.frame, step.planes, step.y + i, step.plane, step.lines.rows + i * step.frame.width);
    }
    add_coefficients<0>(step);
    add_coefficients<1>(step);
    add_coefficients<2>(step);
    add_coefficients<3>(step);
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
  return (static_cast<int64_t>(size) * frame.channels + 2 * size + 3) * frame.width * 4;
}

void dct_shrinkage(const Frame& frame, int32_t threshold, NoiseModel noise, uint8_t* scratch) {
  const Planes planes = planes_of(frame);
  const Lines lines = lines_of(frame, scratch);
  const int32_t all = frame.width * frame.channels;
  for (int32_t i = 0; i < size * all; ++i) lines.sums[0][i] = 0;
  for (int32_t y = 0; y < frame.height; ++y) {
    if (y + size <= frame.height) add_blocks({frame, planes, lines, y, 0, threshold, noise});
    int32_t* sums = lines.sums[y % size];
    write_row(frame, planes, y, sums);
    for (int32_t i = 0; i < all; ++i) sums[i] = 0;
  }
}

}  // namespace pmt
