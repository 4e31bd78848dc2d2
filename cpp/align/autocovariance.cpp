#include "align/autocovariance.hpp"

namespace pmt {
namespace {

struct Span {
  int32_t begin, end;
};

// Columns x for which x and x + dx lie in the map.
Span columns_of(int32_t width, int32_t dx) { return {dx < 0 ? -dx : 0, dx > 0 ? width - dx : width}; }

// One row of the map, each channel with itself; 64 channels at a time.
void add_row_per_channel(const int16_t* first, const int16_t* second, int32_t positions, int32_t channels,
                         int32_t lag_stride, int64_t* sums) {
  constexpr int32_t block = 64;
  for (int32_t begin = 0; begin < channels; begin += block) {
    const int32_t count = channels - begin < block ? channels - begin : block;
    int32_t row[block] = {};
    for (int32_t p = 0; p < positions; ++p) {
      const int16_t* a = first + p * channels + begin;
      const int16_t* b = second + p * channels + begin;
      for (int32_t c = 0; c < count; ++c) row[c] += a[c] * b[c];
    }
    for (int32_t c = 0; c < count; ++c) sums[static_cast<int64_t>(begin + c) * lag_stride] += row[c];
  }
}

// One row of the map, every channel with every other.
void add_row_across_channels(const int16_t* first, const int16_t* second, int32_t positions, int32_t channels,
                             int64_t* sums) {
  for (int32_t p = 0; p < positions; ++p) {
    const int16_t* a = first + p * channels;
    const int16_t* b = second + p * channels;
    for (int32_t i = 0; i < channels; ++i) {
      for (int32_t j = 0; j < channels; ++j) sums[i * channels + j] += a[i] * b[j];
    }
  }
}

}  // namespace

WindowGroups window_groups(const Model& model, int32_t op) {
  constexpr WindowGroups none = {0, 1, 1, 1};
  const OpRecord& record = model.op(op);
  if (op == model.op_count() - 1 || record.kernel_h * record.kernel_w < 2) return none;
  WindowGroups groups = {1, model.input_of(record).channels, record.kernel_h, record.kernel_w};
  if (record.kind == OpKind::depthwise_conv2d) {
    groups.count = groups.channels;
    groups.channels = 1;
  } else if (record.kind != OpKind::conv2d) {
    return none;
  }
  return groups.window() > largest_window ? none : groups;
}

Lag lag_at(const WindowGroups& groups, int32_t index) {
  if (index < groups.kernel_w) return {0, index};
  const int32_t columns = 2 * groups.kernel_w - 1;
  const int32_t rest = index - groups.kernel_w;
  return {1 + rest / columns, rest % columns - (groups.kernel_w - 1)};
}

void add_products(const WindowGroups& groups, const int16_t* map, const TensorRecord& shape, int64_t* sums) {
  const int32_t channels = shape.channels;
  for (int32_t index = 0; index < groups.lags(); ++index) {
    const Lag lag = lag_at(groups, index);
    const Span columns = columns_of(shape.width, lag.dx);
    if (columns.begin >= columns.end) continue;
    for (int32_t y = 0; y + lag.dy < shape.height; ++y) {
      const int16_t* first = map + (y * shape.width + columns.begin) * channels;
      const int16_t* second = map + ((y + lag.dy) * shape.width + columns.begin + lag.dx) * channels;
      const int32_t positions = columns.end - columns.begin;
      if (groups.channels == 1) {
        add_row_per_channel(first, second, positions, channels, groups.lags(), sums + index);
      } else {
        add_row_across_channels(first, second, positions, channels, sums + index * channels * channels);
      }
    }
  }
}

void window_covariance(const WindowGroups& groups, const float* values, float* matrix) {
  const int32_t channels = groups.channels;
  const int32_t window = groups.window();
  const int32_t columns = 2 * groups.kernel_w - 1;
  for (int32_t a = 0; a < window; ++a) {
    for (int32_t b = 0; b < window; ++b) {
      const int32_t from = a / channels;
      const int32_t to = b / channels;
      int32_t dy = to / groups.kernel_w - from / groups.kernel_w;
      int32_t dx = to % groups.kernel_w - from % groups.kernel_w;
      const bool transposed = dy < 0 || (dy == 0 && dx < 0);
      if (transposed) {
        dy = -dy;
        dx = -dx;
      }
      const int32_t lag = dy == 0 ? dx : groups.kernel_w + (dy - 1) * columns + dx + groups.kernel_w - 1;
      const int32_t i = transposed ? b % channels : a % channels;
      const int32_t j = transposed ? a % channels : b % channels;
      matrix[a * window + b] = values[(lag * channels + i) * channels + j];
    }
  }
}

}  // namespace pmt
