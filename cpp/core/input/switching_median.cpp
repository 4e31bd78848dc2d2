#include "core/base/arithmetic.hpp"
#include "core/input/filters.hpp"

namespace pmt {
namespace {

void sort(uint8_t& low, uint8_t& high) {
  const uint8_t smaller = low < high ? low : high;
  high = low < high ? high : low;
  low = smaller;
}

void sort_three(uint8_t* values) {
  sort(values[0], values[1]);
  sort(values[1], values[2]);
  sort(values[0], values[1]);
}

// Sorts the columns of a 3x3 window, then its rows: the median is that of the diagonal from the largest of the smallest
// to the smallest of the largest.
uint8_t switched(const uint8_t* above, const uint8_t* row, const uint8_t* below, int32_t step, int32_t threshold) {
  const uint8_t value = row[0];
  uint8_t columns[3][3];
  for (int32_t k = 0; k < 3; ++k) {
    const int32_t at = (k - 1) * step;
    columns[k][0] = above[at];
    columns[k][1] = row[at];
    columns[k][2] = below[at];
    sort_three(columns[k]);
  }
  uint8_t lowest[3], middle[3], highest[3];
  for (int32_t k = 0; k < 3; ++k) {
    lowest[k] = columns[k][0];
    middle[k] = columns[k][1];
    highest[k] = columns[k][2];
  }
  sort_three(lowest);
  sort_three(middle);
  sort_three(highest);
  uint8_t diagonal[3] = {lowest[2], middle[1], highest[0]};
  sort_three(diagonal);
  const int32_t median = diagonal[1], distance = value < median ? median - value : value - median;
  const bool is_extreme = value <= lowest[0] || value >= highest[2];
  return is_extreme && distance > threshold ? diagonal[1] : value;
}

}  // namespace

void switching_median(const Frame& frame, int32_t threshold, uint8_t* scratch) {
  filter_neighbors(frame, scratch, [&](const uint8_t* above, const uint8_t* at, const uint8_t* below) {
    return switched(above, at, below, frame.channels, threshold);
  });
}

}  // namespace pmt
