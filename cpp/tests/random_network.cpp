#include "tests/random_network.hpp"

#include <climits>
#include <cmath>

#include "tests/image_builder.hpp"

namespace pmt::tests {
namespace {

class NetworkWriter {
 public:
  explicit NetworkWriter(RandomSource& random) : random_(random) {
    const int32_t input_zero_point = zero_point();
    const Shape input = {random.integer(5, 8), random.integer(5, 8), random.integer(1, 4)};
    now_ = builder_.add_tensor(input, 0.05f, input_zero_point);
  }

  void add_stage() {
    switch (random_.integer(0, 6)) {
      case 0:
      case 1: add_conv(random_.integer(2, 8)); break;
      case 2: add_depthwise(random_.chance(3) ? 2 : 1); break;
      case 3: add_residual(); break;
      case 4: add_pool(random_.chance(2) ? OpKind::max_pool : OpKind::average_pool); break;
      case 5: add_pad(); break;
      default: add_branch(); break;
    }
  }

  void add_head(Head head) {
    const int32_t classes = random_.integer(2, 10);
    if (head == Head::pool) {
      add_conv(classes);
      add_mean();
      return;
    }
    if (head == Head::conv2d) {
      add_mean();
      const int32_t channels = shape().channels;
      const OpRecord op = window_op(OpKind::conv2d, now_, next({1, 1, classes}), {1, 1, 1, 1, 0, 0}, 0, 0);
      add(op, random_linear_data(random_, classes, channels));
      return;
    }
    const Shape in = shape();
    const int32_t elements = in.height * in.width * in.channels;
    if (random_.chance(2)) add_copy(plain_op(OpKind::reshape, now_, 0), {1, 1, elements});
    const LinearData data = random_linear_data(random_, classes, elements);
    add(plain_op(OpKind::fully_connected, now_, next({1, 1, classes})), data);
  }

  AlignedBytes build() {
    std::vector<uint32_t> half(layers_.begin() + static_cast<std::ptrdiff_t>(layers_.size() / 2), layers_.end());
    builder_.add_block(layers_);
    builder_.add_block(half);
    return builder_.build();
  }

 private:
  Shape shape() const { return builder_.shape(now_); }
  int32_t zero_point() { return random_.integer(-128, 127); }
  uint32_t next(const Shape& shape) {
    const int32_t zero_point = random_.integer(-60, 60);
    return builder_.add_tensor(shape, static_cast<float>(random_.real(0.03, 0.08)), zero_point);
  }

  void add(OpRecord op, const LinearData& data) {
    if (random_.chance(3)) op.clamp_min = builder_.tensor(op.output).zero_point;  // ReLU
    layers_.push_back(static_cast<uint32_t>(builder_.add_op(op, data)));
    now_ = op.output;
  }

  void add(const OpRecord& op) {
    builder_.add_op(op);
    now_ = op.output;
  }

  // An op whose output is quantized as its input is.
  void add_copy(OpRecord op, const Shape& out) {
    op.output = builder_.add_tensor(out, builder_.tensor(now_).scale, builder_.tensor(now_).zero_point);
    add(op);
  }

  Shape window_shape(OpRecord& op, int32_t stride) {
    const Shape in = shape();
    op.kernel_h = random_.chance(2) && in.height > 2 ? 3 : 1;
    op.kernel_w = random_.chance(2) && in.width > 2 ? 3 : 1;
    op.stride_h = op.stride_w = stride;
    op.pad_top = stride == 1 ? op.kernel_h / 2 : 0;
    op.pad_left = stride == 1 ? op.kernel_w / 2 : 0;
    op.pad_bottom = op.kernel_h / 2;
    op.pad_right = op.kernel_w / 2;
    return {(in.height + op.pad_top + op.pad_bottom - op.kernel_h) / stride + 1,
            (in.width + op.pad_left + op.pad_right - op.kernel_w) / stride + 1, in.channels};
  }

  int32_t stride() { return random_.chance(4) && shape().height > 3 && shape().width > 3 ? 2 : 1; }

  void add_conv(int32_t channels, int32_t stride) {
    OpRecord op = plain_op(OpKind::conv2d, now_, 0);
    const int32_t in_channels = shape().channels;
    Shape out = window_shape(op, stride);
    out.channels = channels;
    op.output = next(out);
    add(op, random_linear_data(random_, channels, op.kernel_h * op.kernel_w * in_channels));
  }
  void add_conv(int32_t channels) { add_conv(channels, stride()); }

  void add_depthwise(int32_t multiplier) {
    OpRecord op = plain_op(OpKind::depthwise_conv2d, now_, 0);
    Shape out = window_shape(op, stride());
    out.channels *= multiplier;
    op.output = next(out);
    add(op, random_linear_data(random_, out.channels, op.kernel_h * op.kernel_w));
  }

  void add_residual() {
    const uint32_t start = now_;
    const Shape around = shape();
    add_conv(random_.integer(2, 6), 1);
    add_conv(around.channels, 1);
    add(join_op(OpKind::add, start, now_, next(around)));
  }

  // The channels of a tensor, and those of a convolution of it.
  void add_branch() {
    const uint32_t start = now_;
    const Shape around = shape();
    add_conv(random_.integer(2, 6), 1);
    Shape out = around;
    out.channels += shape().channels;
    OpRecord op = join_op(OpKind::concatenation, start, now_, 0);
    if (random_.chance(2)) {
      add_copy(op, out);
      return;
    }
    op.output = next(out);
    add(op);
  }

  void add_pool(OpKind kind) {
    OpRecord op = plain_op(kind, now_, 0);
    const Shape out = window_shape(op, stride());
    add_copy(op, out);
  }

  void add_pad() {
    if (shape().height > 9 || shape().width > 9) return;
    OpRecord op = plain_op(OpKind::pad, now_, 0);
    op.pad_top = random_.integer(0, 1);
    op.pad_left = random_.integer(0, 2);
    op.pad_bottom = random_.integer(0, 1);
    op.pad_right = random_.integer(0, 1);
    const Shape in = shape();
    add_copy(op, {in.height + op.pad_top + op.pad_bottom, in.width + op.pad_left + op.pad_right, in.channels});
  }

  void add_mean() {
    const Shape out = {1, 1, shape().channels};
    if (random_.chance(2)) {
      add_copy(plain_op(OpKind::mean, now_, 0), out);
    } else {
      add(plain_op(OpKind::mean, now_, next(out)));
    }
  }

  RandomSource& random_;
  ImageBuilder builder_;
  std::vector<uint32_t> layers_;
  uint32_t now_ = 0;
};

}  // namespace

AlignedBytes random_network(RandomSource& random, int32_t stages, Head head) {
  NetworkWriter writer(random);
  for (int32_t i = 0; i < stages; ++i) writer.add_stage();
  writer.add_head(head);
  return writer.build();
}

LinearData random_linear_data(RandomSource& random, int32_t channels, int32_t taps) {
  LinearData data = {random.bytes(static_cast<int64_t>(channels) * taps, -127, 127), {}, {}};
  for (int32_t c = 0; c < channels; ++c) {
    const bool dead = random.chance(10);
    const double scale = random.real(0.5, 2.0) / (75.0 * std::sqrt(static_cast<double>(taps)));
    data.scales.push_back(dead ? 3.9e-9f : static_cast<float>(scale));
    data.bias.push_back(dead ? (random.chance(2) ? INT_MIN : INT_MAX) : random.integer(-1000, 1000));
  }
  return data;
}

namespace {

constexpr int32_t most_joined = 24;  // channels

bool same_shape(const Shape& a, const Shape& b) {
  return a.height == b.height && a.width == b.width && a.channels == b.channels;
}

class DagWriter {
 public:
  explicit DagWriter(RandomSource& random) : random_(random) {
    tensors_.push_back(builder_.add_tensor({4, 4, 2}, 0.05f, 3));
  }

  void add_op() {
    switch (random_.integer(0, 4)) {
      case 0: add_conv(1); break;
      case 1: add_conv(2); break;
      case 2: add_depthwise(); break;
      case 3: add_concatenation(); break;
      default: add_sum(); break;
    }
  }

  AlignedBytes build() {
    const uint32_t input = any_tensor();
    const Shape in = builder_.shape(input);
    const int32_t taps = in.height * in.width * in.channels;
    const LinearData data = random_linear_data(random_, 3, taps);
    builder_.add_op(plain_op(OpKind::fully_connected, input, next({1, 1, 3})), data);
    return builder_.build();
  }

 private:
  uint32_t any_tensor() { return random_.pick(tensors_); }

  uint32_t next(const Shape& shape) {
    tensors_.push_back(builder_.add_tensor(shape, 0.06f, random_.integer(-30, 30)));
    return tensors_.back();
  }

  void add_conv(int32_t stride) {
    const uint32_t input = any_tensor();
    const Shape in = builder_.shape(input);
    const int32_t channels = random_.pick<int32_t>({2, 4, 9});
    const Shape out = {(in.height - 1) / stride + 1, (in.width - 1) / stride + 1, channels};
    const LinearData data = random_linear_data(random_, channels, in.channels);
    builder_.add_op(window_op(OpKind::conv2d, input, next(out), {1, 1, stride, stride, 0, 0}, 0, 0), data);
  }

  void add_depthwise() {
    const uint32_t input = any_tensor();
    const Shape in = builder_.shape(input);
    const LinearData data = random_linear_data(random_, in.channels, 9);
    builder_.add_op(window_op(OpKind::depthwise_conv2d, input, next(in), {3, 3, 1, 1, 1, 1}, 1, 1), data);
  }

  void add_sum() {
    const uint32_t first = any_tensor();
    std::vector<uint32_t> partners;
    for (const uint32_t tensor : tensors_) {
      if (same_shape(builder_.shape(tensor), builder_.shape(first))) partners.push_back(tensor);
    }
    const uint32_t second = random_.pick(partners);
    builder_.add_op(join_op(OpKind::add, first, second, next(builder_.shape(first))));
  }

  void add_concatenation() {
    const uint32_t first = any_tensor();
    const Shape shape = builder_.shape(first);
    std::vector<uint32_t> partners;
    for (const uint32_t tensor : tensors_) {
      const Shape& other = builder_.shape(tensor);
      if (other.height == shape.height && other.width == shape.width) partners.push_back(tensor);
    }
    const uint32_t second = random_.pick(partners);
    const int32_t channels = shape.channels + builder_.shape(second).channels;
    if (channels > most_joined) return;
    builder_.add_op(join_op(OpKind::concatenation, first, second, next({shape.height, shape.width, channels})));
  }

  RandomSource& random_;
  ImageBuilder builder_;
  std::vector<uint32_t> tensors_;
};

}  // namespace

AlignedBytes random_dag(RandomSource& random, int32_t ops) {
  DagWriter writer(random);
  for (int32_t i = 0; i < ops; ++i) writer.add_op();
  return writer.build();
}

namespace {

class BottleneckWriter {
 public:
  explicit BottleneckWriter(RandomSource& random) : random_(random) {
    now_ = builder_.add_tensor({random.integer(6, 20), random.integer(3, 6), random.integer(1, 4)}, 0.05f, 3);
  }

  void add_block() {
    const uint32_t start = now_;
    add_pointwise(random_.integer(6, 16));
    add_window();
    const bool residual = shape().height == builder_.shape(start).height &&
                          shape().width == builder_.shape(start).width && random_.chance(2);
    add_pointwise(residual ? builder_.shape(start).channels : random_.integer(1, 4));
    if (!residual) return;
    add(join_op(OpKind::add, start, now_, next(shape())));
  }

  void add_head(bool one_output) {
    const int32_t classes = one_output ? 1 : random_.integer(2, 6);
    const int32_t elements = shape().height * shape().width * shape().channels;
    add(plain_op(OpKind::fully_connected, now_, next({1, 1, classes})), elements);
  }

  // For frames of the input's size, as they are.
  void add_stage() {
    const Shape input = builder_.shape(0);
    builder_.set_stage(input.height, input.width, {});
  }

  AlignedBytes build() { return builder_.build(); }

 private:
  Shape shape() const { return builder_.shape(now_); }
  uint32_t next(const Shape& shape) {
    const int32_t zero_point = random_.integer(-60, 60);
    return builder_.add_tensor(shape, static_cast<float>(random_.real(0.03, 0.08)), zero_point);
  }

  void add(const OpRecord& op) {
    builder_.add_op(op);
    now_ = op.output;
  }
  void add(const OpRecord& op, int32_t taps) {
    builder_.add_op(op, random_linear_data(random_, builder_.shape(op.output).channels, taps));
    now_ = op.output;
  }

  void add_pointwise(int32_t channels) {
    const Shape in = shape();
    add(plain_op(OpKind::conv2d, now_, next({in.height, in.width, channels})), in.channels);
  }

  // One axis: a window, its stride, the padding before and after, and the size of the output.
  struct Axis {
    int32_t kernel, stride, before, after, size;
  };
  Axis axis(int32_t size) {
    Axis a = {random_.integer(1, size < 7 ? size : 7), random_.integer(1, 3), 0, 0, 0};
    a.before = random_.integer(0, a.kernel - 1);
    a.after = random_.integer(0, a.kernel - 1);
    a.size = (size + a.before + a.after - a.kernel) / a.stride + 1;
    return a;
  }

  void add_window() {
    const Shape in = shape();
    const Axis y = axis(in.height), x = axis(in.width);
    const Window window = {y.kernel, x.kernel, y.stride, x.stride, y.before, x.before};
    const Shape out = {y.size, x.size, in.channels};
    if (random_.chance(4)) {  // pools keep the quantization
      const uint32_t output = builder_.add_tensor(out, builder_.tensor(now_).scale, builder_.tensor(now_).zero_point);
      const OpKind kind = random_.chance(2) ? OpKind::max_pool : OpKind::average_pool;
      add(window_op(kind, now_, output, window, y.after, x.after));
      return;
    }
    const bool depthwise = !random_.chance(4);
    const OpKind kind = depthwise ? OpKind::depthwise_conv2d : OpKind::conv2d;
    add(window_op(kind, now_, next(out), window, y.after, x.after),
        y.kernel * x.kernel * (depthwise ? 1 : in.channels));
  }

  RandomSource& random_;
  ImageBuilder builder_;
  uint32_t now_ = 0;
};

}  // namespace

AlignedBytes random_bottlenecks(RandomSource& random, int32_t blocks, bool has_stage, bool one_output) {
  BottleneckWriter writer(random);
  for (int32_t i = 0; i < blocks; ++i) writer.add_block();
  writer.add_head(one_output);
  if (has_stage) writer.add_stage();
  return writer.build();
}

}  // namespace pmt::tests
