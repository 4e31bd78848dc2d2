#include "tests/random_network.hpp"

#include <climits>
#include <cmath>

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

}  // namespace pmt::tests
