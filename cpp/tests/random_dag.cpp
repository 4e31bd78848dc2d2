#include "tests/random_dag.hpp"

#include "tests/random_network.hpp"

namespace pmt::tests {
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

}  // namespace pmt::tests
