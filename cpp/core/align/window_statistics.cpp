#include "core/align/window_statistics.hpp"

#include "core/base/arithmetic.hpp"

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

struct WindowMeter::Measurement {
  int32_t op;
  WindowGroups groups;
  const float* centers;
};

namespace {

int32_t center_of(float mean) { return round_half_even(clamp(mean, -128.0f, 127.0f)); }

}  // namespace

Status WindowMeter::open(const StatisticsSetup& setup, void* memory, size_t bytes) {
  const Model& model = *setup.model;
  PMT_RETURN_IF_ERROR(open_forwards(setup, memory, bytes));
  most_channels_ = 0;
  most_products_ = 0;
  int32_t most_elements = 0;
  for (int32_t i = 0; i < model.op_count(); ++i) {
    const WindowGroups groups = window_groups(model, i);
    if (groups.count == 0) continue;
    const TensorRecord& in = model.input_of(model.op(i));
    const int64_t products = int64_t{groups.count} * groups.values();
    if (products > most_products_) most_products_ = products;
    if (in.channels > most_channels_) most_channels_ = in.channels;
    if (element_count(in) > most_elements) most_elements = element_count(in);
  }
  sums_ = arena().take<Sums>(workers());
  for (int32_t i = 0; i < workers(); ++i) {
    const Sums sums = {arena().take<int64_t>(most_channels_), arena().take<int64_t>(most_products_),
                       arena().take<int16_t>(most_elements)};
    if (arena().fits()) sums_[i] = sums;
  }
  return arena().fits() ? Status{} : Status{Code::arena_too_small};
}

void WindowMeter::add_sample(const Measurement& measurement, const Activations& memory, int32_t worker) {
  const Model& model = this->model();
  const OpRecord& op = model.op(measurement.op);
  const TensorRecord& in = model.input_of(op);
  const int8_t* input = memory.tensor(plan(), Pass::main, op.input[0]);
  const Sums& sums = sums_[worker];
  const int32_t positions = in.height * in.width;
  for (int32_t c = 0; c < in.channels; ++c) {
    const int32_t center = center_of(measurement.centers[c]);
    int32_t sum = 0;
    for (int32_t p = 0; p < positions; ++p) {
      const int32_t value = input[p * in.channels + c] - center;
      sums.map[p * in.channels + c] = static_cast<int16_t>(value);
      sum += value;
    }
    sums.channels[c] += sum;
  }
  add_products(measurement.groups, sums.map, in, sums.products);
}

// The difference of a mean and its center is a constant, whose products are in every sum.
void WindowMeter::conclude(const Measurement& measurement, int32_t samples, float* means, float* values) const {
  const TensorRecord& in = model().input_of(model().op(measurement.op));
  const float count = to_float(int64_t{samples} * in.height * in.width);
  const auto total = [this](auto sum_of_worker) {
    int64_t sum = 0;
    for (int32_t w = 0; w < workers(); ++w) sum += sum_of_worker(sums_[w]);
    return to_float(sum);
  };
  for (int32_t c = 0; c < in.channels; ++c) {
    means[c] = total([c](const Sums& sums) { return sums.channels[c]; }) / count;
  }
  const int32_t channels = measurement.groups.channels;
  for (int32_t g = 0; g < measurement.groups.count; ++g) {
    for (int32_t v = 0; v < measurement.groups.values(); ++v) {
      const Lag lag = lag_at(measurement.groups, v / (channels * channels));
      const int32_t width = in.width - (lag.dx < 0 ? -lag.dx : lag.dx);
      const int32_t height = in.height - lag.dy;
      const float share = width > 0 && height > 0 ? to_float(height * width) / to_float(in.height * in.width) : 0.0f;
      const int64_t index = int64_t{g} * measurement.groups.values() + v;
      const float product = total([index](const Sums& sums) { return sums.products[index]; }) / count;
      const int32_t first = measurement.groups.count > 1 ? g : v / channels % channels;
      const int32_t second = measurement.groups.count > 1 ? g : v % channels;
      values[index] = product - share * means[first] * means[second];
    }
  }
  for (int32_t c = 0; c < in.channels; ++c) means[c] += to_float(center_of(measurement.centers[c]));
}

Status WindowMeter::measure(int32_t op, int32_t samples, const SampleSource& source, const float* centers, float* means,
                            float* values) {
  PMT_RETURN_IF_ERROR(check(op));
  const Model& model = this->model();
  const WindowGroups groups = window_groups(model, op);
  if (groups.count == 0) return {Code::layer_not_trainable, op};
  const TensorRecord& in = model.input_of(model.op(op));
  if (samples < 1 || int64_t{samples} * in.height * in.width > most_values) return {Code::batch_size, op};
  for (int32_t w = 0; w < workers(); ++w) {
    for (int32_t c = 0; c < in.channels; ++c) sums_[w].channels[c] = 0;
    for (int64_t i = 0; i < int64_t{groups.count} * groups.values(); ++i) sums_[w].products[i] = 0;
  }
  const Measurement measurement = {op, groups, centers};
  const auto add = [&](const Activations& memory, int32_t worker) { add_sample(measurement, memory, worker); };
  PMT_RETURN_IF_ERROR(run(op, samples, source, add));
  conclude(measurement, samples, means, values);
  return {};
}

}  // namespace pmt
