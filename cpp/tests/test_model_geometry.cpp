// Shapes that an op may join, by example.
#include <doctest/doctest.h>

#include "tests/engine.hpp"
#include "tests/image_builder.hpp"

using namespace pmt;
using namespace pmt::tests;

namespace {

Code code_of(const OpRecord& op, const Shape& in, const Shape& out) {
  ImageBuilder builder;
  builder.add_tensor(in);
  builder.add_tensor(out);
  builder.add_op(op);
  return status_of(builder.build()).code;
}

Code code_of(OpKind kind, const Shape& in, const Shape& out) { return code_of(plain_op(kind, 0, 1), in, out); }

// A fully connected layer of two classes over every input, with the largest products there are.
AlignedBytes widest_products(int32_t taps) {
  ImageBuilder builder({{1, 1, taps, 0.05f, -128}, {1, 1, 2}});
  LinearData data = constant_data(2 * static_cast<size_t>(taps), 2);
  for (int8_t& weight : data.weights) weight = -128;
  builder.add_op(plain_op(OpKind::fully_connected, 0, 1), data);
  return builder.build();
}

}  // namespace

TEST_CASE("a reshape keeps the number of elements") {
  CHECK(code_of(OpKind::reshape, {2, 3, 4}, {1, 1, 24}) == Code::ok);
  CHECK(code_of(OpKind::reshape, {2, 3, 4}, {1, 1, 23}) == Code::op_geometry);
  CHECK(code_of(OpKind::reshape, {2, 3, 4}, {1, 1, 25}) == Code::op_geometry);
}

TEST_CASE("a mean keeps the channels and nothing else") {
  CHECK(code_of(OpKind::mean, {2, 3, 4}, {1, 1, 4}) == Code::ok);
  CHECK(code_of(OpKind::mean, {2, 3, 4}, {1, 1, 3}) == Code::op_geometry);
  CHECK(code_of(OpKind::mean, {2, 3, 4}, {1, 2, 4}) == Code::op_geometry);
}

TEST_CASE("ops without a window have a kernel and stride of 1 and no padding") {
  const auto codes = [](OpRecord op, const Shape& in, const Shape& out) {
    int32_t refused = 0, fields = 0;
    for (int32_t OpRecord::*field :
         {&OpRecord::kernel_h, &OpRecord::kernel_w, &OpRecord::stride_h, &OpRecord::stride_w, &OpRecord::pad_top,
          &OpRecord::pad_left, &OpRecord::pad_bottom, &OpRecord::pad_right}) {
      for (const int32_t value : {-1, 2}) {
        OpRecord other = op;
        other.*field = value;
        ++fields;
        refused += code_of(other, in, out) == Code::op_geometry ? 1 : 0;
      }
    }
    CHECK(code_of(op, in, out) == Code::ok);
    return refused == fields;
  };
  CHECK(codes(plain_op(OpKind::mean, 0, 1), {2, 3, 4}, {1, 1, 4}));
  CHECK(codes(plain_op(OpKind::reshape, 0, 1), {2, 3, 4}, {1, 1, 24}));
  CHECK(codes(join_op(OpKind::add, 0, 0, 1), {2, 3, 4}, {2, 3, 4}));
  CHECK(codes(plain_op(OpKind::pad, 0, 1), {2, 3, 4}, {2, 3, 4}));
}

TEST_CASE("a pad adds what it says") {
  OpRecord op = plain_op(OpKind::pad, 0, 1);
  op.pad_top = 1;
  op.pad_right = 2;
  CHECK(code_of(op, {2, 3, 4}, {3, 5, 4}) == Code::ok);
  CHECK(code_of(op, {2, 3, 4}, {3, 4, 4}) == Code::op_geometry);
  CHECK(code_of(op, {2, 3, 4}, {3, 5, 5}) == Code::op_geometry);
  op.pad_top = -1;
  CHECK(code_of(op, {2, 3, 4}, {1, 5, 4}) == Code::op_geometry);
}

TEST_CASE("a pool keeps the channels") {
  CHECK(code_of(OpKind::max_pool, {2, 3, 4}, {2, 3, 4}) == Code::ok);
  CHECK(code_of(OpKind::max_pool, {2, 3, 4}, {2, 3, 3}) == Code::op_geometry);
  CHECK(code_of(OpKind::average_pool, {2, 3, 4}, {2, 3, 5}) == Code::op_geometry);
}

TEST_CASE("an addition joins equal shapes, not equal numbers of elements") {
  const auto code = [](const Shape& second) {
    ImageBuilder builder;
    builder.add_tensor({2, 3, 4});
    builder.add_tensor(second);
    builder.add_tensor({2, 3, 4});
    builder.add_op(plain_op(OpKind::reshape, 0, 1));
    builder.add_op(join_op(OpKind::add, 0, 1, 2));
    return status_of(builder.build()).code;
  };
  CHECK(code({2, 3, 4}) == Code::ok);
  CHECK(code({3, 2, 4}) == Code::op_geometry);
  CHECK(code({1, 1, 24}) == Code::op_geometry);
}

TEST_CASE("a layer whose accumulators could overflow is refused, the widest allowed one does not") {
  CHECK(status_of(widest_products(65536)).code == Code::op_geometry);
  const OwnedModel model(widest_products(65535));
  Engine engine(model);
  const std::vector<int8_t> input(65535, 127);
  // -(255 * 128 * 65535) products of 0.05 * 0.1
  CHECK(engine.logits(input, false)[1] == doctest::Approx(-2139062400.0 * 0.005));
  CHECK(engine.logits(input, true)[1] == doctest::Approx(-128 * 0.05));
}

TEST_CASE("a convolution over too many taps is refused") {
  const auto code = [](int32_t channels) {
    ImageBuilder builder({{2, 2, channels}, {1, 1, 1}});
    builder.add_op(window_op(OpKind::conv2d, 0, 1, {2, 2, 1, 1, 0, 0}, 0, 0),
                   constant_data(4 * static_cast<size_t>(channels), 1));
    return status_of(builder.build()).code;
  };
  CHECK(code(16383) == Code::ok);           // 65532 taps
  CHECK(code(16384) == Code::op_geometry);  // 65536
}

TEST_CASE("a plane whose sum could leave int32 is refused") {
  CHECK(code_of(OpKind::mean, {4096, 2055, 1}, {1, 1, 1}) == Code::ok);
  CHECK(code_of(OpKind::mean, {4096, 2057, 1}, {1, 1, 1}) == Code::op_geometry);
  CHECK(code_of(OpKind::mean, {4096, 4096, 1}, {1, 1, 1}) == Code::op_geometry);
}
