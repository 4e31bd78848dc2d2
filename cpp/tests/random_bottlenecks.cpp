#include "tests/random_bottlenecks.hpp"

#include "tests/image_builder.hpp"
#include "tests/random_network.hpp"

namespace pmt::tests {
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

  void add_head() {
    const int32_t classes = random_.integer(2, 6);
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

AlignedBytes random_bottlenecks(RandomSource& random, int32_t blocks, bool has_stage) {
  BottleneckWriter writer(random);
  for (int32_t i = 0; i < blocks; ++i) writer.add_block();
  writer.add_head();
  if (has_stage) writer.add_stage();
  return writer.build();
}

}  // namespace pmt::tests
