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

namespace {

int32_t center_of(float mean) { return round_half_even(clamp(mean, -128.0f, 127.0f)); }

}  // namespace

WindowSums::Size WindowSums::larger(const Size& size, const Model& model, int32_t op) {
  const WindowGroups groups = window_groups(model, op);
  const TensorRecord& in = model.input_of(model.op(op));
  const int32_t values = groups.count * groups.values();
  return {in.channels > size.channels ? in.channels : size.channels,
          element_count(in) > size.elements ? element_count(in) : size.elements,
          values > size.values ? values : size.values};
}

void WindowSums::take(const Size& size, int32_t workers, Arena& arena) {
  size_ = size;
  workers_ = workers;
  channels_ = arena.take<int64_t>(int64_t{workers} * size.channels);
  products_ = arena.take<int64_t>(int64_t{workers} * size.values);
  maps_ = arena.take<int16_t>(int64_t{workers} * size.elements);
}

void WindowSums::begin(const Model& model, int32_t op, const float* centers) {
  model_ = &model;
  op_ = op;
  groups_ = window_groups(model, op);
  centers_ = centers;
  for (int64_t i = 0; i < int64_t{workers_} * size_.channels; ++i) channels_[i] = 0;
  for (int64_t i = 0; i < int64_t{workers_} * size_.values; ++i) products_[i] = 0;
}

void WindowSums::add(const int8_t* input, int32_t worker) {
  const TensorRecord& in = model_->input_of(model_->op(op_));
  int16_t* const map = maps_ + int64_t{worker} * size_.elements;
  const int32_t positions = in.height * in.width;
  for (int32_t c = 0; c < in.channels; ++c) {
    const int32_t center = center_of(centers_[c]);
    int32_t sum = 0;
    for (int32_t p = 0; p < positions; ++p) {
      const int32_t value = input[p * in.channels + c] - center;
      map[p * in.channels + c] = static_cast<int16_t>(value);
      sum += value;
    }
    channels_[int64_t{worker} * size_.channels + c] += sum;
  }
  add_products(groups_, map, in, products_ + int64_t{worker} * size_.values);
}

// A sum over all workers, divided by the positions.
float WindowSums::mean(const int64_t* sums, int32_t stride) const {
  int64_t sum = 0;
  for (int64_t w = 0; w < workers_; ++w) sum += sums[w * stride];
  return to_float(sum) / positions_;
}

void WindowSums::conclude(int32_t samples, float* means) {
  const TensorRecord& in = model_->input_of(model_->op(op_));
  positions_ = to_float(int64_t{samples} * in.height * in.width);
  for (int32_t c = 0; c < in.channels; ++c) {
    means[c] = mean(channels_ + c, size_.channels) + to_float(center_of(centers_[c]));
  }
}

// The difference of a mean and its center is a constant, whose products are in every sum.
float WindowSums::value(int32_t index) const {
  const TensorRecord& in = model_->input_of(model_->op(op_));
  const int32_t channels = groups_.channels;
  const int32_t group = index / groups_.values();
  const int32_t v = index % groups_.values();
  const Lag lag = lag_at(groups_, v / (channels * channels));
  const int32_t width = in.width - (lag.dx < 0 ? -lag.dx : lag.dx);
  const int32_t height = in.height - lag.dy;
  const float share = width > 0 && height > 0 ? to_float(height * width) / to_float(in.height * in.width) : 0.0f;
  const int32_t first = groups_.count > 1 ? group : v / channels % channels;
  const int32_t second = groups_.count > 1 ? group : v % channels;
  const float rests = mean(channels_ + first, size_.channels) * mean(channels_ + second, size_.channels);
  return mean(products_ + index, size_.values) - share * rests;
}

Status WindowMeter::open(const StatisticsSetup& setup, void* memory, size_t bytes) {
  const Model& model = *setup.model;
  PMT_RETURN_IF_ERROR(open_forwards(setup, memory, bytes));
  WindowSums::Size size = {};
  for (int32_t i = 0; i < model.op_count(); ++i) {
    if (window_groups(model, i).count > 0) size = WindowSums::larger(size, model, i);
  }
  sums_.take(size, workers(), arena());
  return arena().fits() ? Status{} : Status{Code::arena_too_small};
}

Status WindowMeter::measure(int32_t op, int32_t samples, const SampleSource& source, const float* centers, float* means,
                            float* values) {
  PMT_RETURN_IF_ERROR(check(op));
  const Model& model = this->model();
  if (window_groups(model, op).count == 0) return {Code::layer_not_trainable, op};
  const OpRecord& record = model.op(op);
  const TensorRecord& in = model.input_of(record);
  if (samples < 1 || int64_t{samples} * in.height * in.width > most_values) return {Code::batch_size, op};
  sums_.begin(model, op, centers);
  const auto add = [&](const Activations& memory, int32_t worker) {
    sums_.add(memory.tensor(plan(), Pass::main, record.input[0]), worker);
  };
  PMT_RETURN_IF_ERROR(run(op, samples, source, add));
  sums_.conclude(samples, means);
  const WindowGroups groups = window_groups(model, op);
  for (int32_t i = 0; i < groups.count * groups.values(); ++i) values[i] = sums_.value(i);
  return {};
}

}  // namespace pmt
