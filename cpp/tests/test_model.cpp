#include <doctest/doctest.h>

#include <algorithm>
#include <climits>
#include <cstddef>
#include <limits>
#include <string>
#include <vector>

#include "core/image/model.hpp"
#include "tests/engine.hpp"
#include "tests/image_builder.hpp"

using namespace pmt;
using namespace pmt::tests;

namespace {

// conv2d 4x4x2 -> 4x4x3, average_pool -> 2x2x3, fully_connected -> 5.
AlignedBytes small_image() {
  ImageBuilder builder({{4, 4, 2}, {4, 4, 3, 0.1f, -7}, {2, 2, 3, 0.1f, -7}, {1, 1, 5}});
  builder.add_op(window_op(OpKind::conv2d, 0, 1, {3, 3, 1, 1, 1, 1}, 1, 1),
                 {std::vector<int8_t>(54, 3), {1, 2, 3}, {0.1f, 0.2f, 0.3f}});
  builder.add_op(window_op(OpKind::average_pool, 1, 2, {2, 2, 2, 2, 0, 0}, 0, 0));
  builder.add_op(plain_op(OpKind::fully_connected, 2, 3),
                 {std::vector<int8_t>(60, 4), std::vector<int32_t>(5, 9), std::vector<float>(5, 0.5f)});
  builder.add_block({0, 2});
  return builder.build();
}

Status open_with(size_t offset, uint32_t word) {
  AlignedBytes image = small_image();
  image.set_word(offset, word);
  if (offset != offsetof(ImageHeader, crc32)) seal(image);
  return status_of(image);
}

size_t tensor_at(uint32_t index, size_t field) {
  return small_image().word(offsetof(ImageHeader, tensors)) + index * sizeof(TensorRecord) + field;
}
size_t op_at(uint32_t index, size_t field) {
  return small_image().word(offsetof(ImageHeader, ops)) + index * sizeof(OpRecord) + field;
}
size_t data_at(uint32_t op, size_t field) {
  return small_image().word(offsetof(ImageHeader, data)) + small_image().word(op_at(op, field));
}

uint32_t bits_of(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
}

}  // namespace

TEST_CASE("a valid image opens and reads back") {
  const OwnedModel model(small_image());
  CHECK(model.tensor_count() == 4);
  CHECK(model.op_count() == 3);
  CHECK(model.classes() == 5);
  CHECK(weight_count(model, model.op(0)) == 54);
  CHECK(weight_count(model, model.op(1)) == 0);
  CHECK(weight_count(model, model.op(2)) == 60);
  CHECK(mac_count(model, model.op(0)) == 54 * 16);
  CHECK(model.weights(model.op(2))[59] == 4);
  CHECK(model.bias(model.op(0))[2] == 3);
  CHECK(model.weight_scales(model.op(0))[1] == 0.2f);
  CHECK(model.producer(0) == -1);
  CHECK(model.producer(3) == 2);
  CHECK(model.last_use(1) == 1);
  CHECK(model.last_use(3) == 3);
  CHECK(model.block_layer(model.block(0), 1) == 2);
}

TEST_CASE("names, blocks, metadata and shapes read back as they were written") {
  ImageBuilder builder({{6, 5, 2, 0.25f, -3}, {3, 3, 4, 0.5f, 7}, {1, 1, 4, 0.5f, 7}});
  builder.name_tensor(0, "image");
  builder.name_tensor(2, "scores");
  OpRecord conv = window_op(OpKind::conv2d, 0, 1, {2, 3, 2, 2, 0, 1}, 0, 1);
  conv.name = builder.add_name("conv/first");
  conv.clamp_min = 7;
  std::vector<int8_t> weights(48);
  for (size_t i = 0; i < weights.size(); ++i) weights[i] = static_cast<int8_t>(2 * i - 40);
  builder.add_op(conv, {weights, {-5, 6, INT_MIN, INT_MAX}, {1e-30f, 0.5f, 2.0f, 1e6f}});
  builder.add_op(plain_op(OpKind::mean, 1, 2));
  builder.add_block({}, builder.add_name("empty"));
  builder.add_block({0}, builder.add_name("B1"));
  builder.set_metadata("{\"classes\": 4}");
  const OwnedModel model(builder.build());
  CHECK(std::string(model.name(model.input().name)) == "image");
  CHECK(std::string(model.name(model.output().name)) == "scores");
  CHECK(std::string(model.name(model.tensor(1).name)) == "x");
  CHECK(std::string(model.name(model.op(0).name)) == "conv/first");
  CHECK(std::string(model.metadata(), model.header().metadata.count) == "{\"classes\": 4}");
  CHECK(model.block_count() == 2);
  CHECK(std::string(model.name(model.block(0).name)) == "empty");
  CHECK(model.block(0).count == 0);
  CHECK(std::string(model.name(model.block(1).name)) == "B1");
  CHECK(model.block(1).count == 1);
  CHECK(model.block_layer(model.block(1), 0) == 0);
  const OpRecord& op = model.op(0);
  CHECK(op.kind == OpKind::conv2d);
  CHECK(model.input_of(op).height == 6);
  CHECK(model.input_of(op).width == 5);
  CHECK(model.input_of(op).scale == 0.25f);
  CHECK(model.output_of(op).zero_point == 7);
  CHECK(op.clamp_min == 7);
  CHECK(std::vector<int8_t>(model.weights(op), model.weights(op) + 48) == weights);
  CHECK(std::vector<int32_t>(model.bias(op), model.bias(op) + 4) == std::vector<int32_t>{-5, 6, INT_MIN, INT_MAX});
  CHECK(std::vector<float>(model.weight_scales(op), model.weight_scales(op) + 4) ==
        std::vector<float>{1e-30f, 0.5f, 2.0f, 1e6f});
}

TEST_CASE("channels below 1e-6 are dead") {
  CHECK(channel_is_dead(3.9e-9f));
  CHECK(!channel_is_dead(1e-6f));
}

TEST_CASE("damage to the header has a code of its own") {
  CHECK(open_with(0, 0x12345678u).code == Code::image_magic);
  CHECK(open_with(offsetof(ImageHeader, version), 2).code == Code::image_version);
  CHECK(open_with(offsetof(ImageHeader, image_bytes), 1u << 20).code == Code::image_too_short);
  CHECK(open_with(offsetof(ImageHeader, crc32), 1).code == Code::image_checksum);
  CHECK(open_with(offsetof(ImageHeader, tensors), 130).code == Code::image_layout);
  CHECK(open_with(offsetof(ImageHeader, tensors), 0).code == Code::image_layout);
  CHECK(open_with(offsetof(ImageHeader, ops) + 4, 0).code == Code::image_layout);
  CHECK(open_with(offsetof(ImageHeader, ops) + 4, 0xFFFFFFFFu).code == Code::image_layout);
  CHECK(open_with(offsetof(ImageHeader, data), 0xFFFFFFF0u).code == Code::image_layout);
  CHECK(open_with(offsetof(ImageHeader, names) + 4, 0).code == Code::name_range);
  CHECK(open_with(offsetof(ImageHeader, names) + 4, 1).code == Code::name_range);  // no terminator
  CHECK(open_with(offsetof(ImageHeader, input_tensor), 4).code == Code::op_tensor);
  CHECK(open_with(offsetof(ImageHeader, output_tensor), 1).code == Code::op_tensor);
  CHECK(open_with(offsetof(ImageHeader, input_std), 0).code == Code::tensor_quantization);
}

TEST_CASE("a misplaced image is refused before it is read") {
  AlignedBytes memory(small_image().size() + 16);
  Model model;
  CHECK(model.open(memory.data() + 4, memory.size() - 16).code == Code::image_alignment);
  CHECK(model.open(memory.data(), 127).code == Code::image_too_short);
  CHECK(model.open(nullptr, 0).code == Code::image_too_short);
  CHECK(model.open(nullptr, 200).code == Code::image_too_short);
}

TEST_CASE("damage to a tensor names the tensor") {
  const auto check = [](size_t field, uint32_t word, Code code) {
    const Status status = open_with(tensor_at(1, field), word);
    CHECK(status.code == code);
    CHECK(status.index() == 1);
  };
  check(offsetof(TensorRecord, height), 0, Code::tensor_shape);
  check(offsetof(TensorRecord, width), 0xFFFFFFFFu, Code::tensor_shape);
  check(offsetof(TensorRecord, channels), 1u << 20, Code::tensor_shape);
  check(offsetof(TensorRecord, scale), bits_of(0.0f), Code::tensor_quantization);
  check(offsetof(TensorRecord, scale), bits_of(1e-13f), Code::tensor_quantization);
  check(offsetof(TensorRecord, scale), bits_of(2e6f), Code::tensor_quantization);
  check(offsetof(TensorRecord, scale), bits_of(std::numeric_limits<float>::quiet_NaN()), Code::tensor_quantization);
  check(offsetof(TensorRecord, zero_point), 128, Code::tensor_quantization);
  check(offsetof(TensorRecord, name), 2, Code::name_range);
}

TEST_CASE("damage to an op names the op") {
  const auto check = [](uint32_t op, size_t field, uint32_t word, Code code) {
    CAPTURE(field);
    const Status status = open_with(op_at(op, field), word);
    CHECK(status.code == code);
    CHECK(status.index() == static_cast<int32_t>(op));
  };
  check(0, offsetof(OpRecord, kind), 0, Code::op_kind);
  check(0, offsetof(OpRecord, kind), 11, Code::op_kind);
  check(0, offsetof(OpRecord, input), 2, Code::op_tensor);  // not made yet
  check(0, offsetof(OpRecord, input), 99, Code::op_tensor);
  check(0, offsetof(OpRecord, input) + 4, 0, Code::op_tensor);  // conv2d has one input
  check(1, offsetof(OpRecord, output), 1, Code::op_tensor);     // made twice
  check(0, offsetof(OpRecord, kernel_h), 5, Code::op_geometry);
  check(0, offsetof(OpRecord, stride_w), 0, Code::op_geometry);
  check(0, offsetof(OpRecord, pad_left), 0xFFFFFFFFu, Code::op_geometry);
  check(0, offsetof(OpRecord, clamp_min), 127, Code::op_clamp);
  check(0, offsetof(OpRecord, clamp_max), 128, Code::op_clamp);
  check(0, offsetof(OpRecord, weight_offset), 1u << 20, Code::op_data);
  check(0, offsetof(OpRecord, weight_offset), 0xFFFFFFF0u, Code::op_data);
  check(2, offsetof(OpRecord, bias_offset), 8, Code::op_data);  // misaligned
  check(0, offsetof(OpRecord, name), 7, Code::name_range);
}

TEST_CASE("a weight scale outside its bounds names the op") {
  for (const float scale :
       {0.0f, -1.0f, 1e-31f, 2e6f, std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()}) {
    const Status status = open_with(data_at(2, offsetof(OpRecord, scale_offset)) + 8, bits_of(scale));
    CHECK(status.code == Code::op_quantization);
    CHECK(status.index() == 2);
  }
  CHECK(open_with(data_at(2, offsetof(OpRecord, scale_offset)) + 8, bits_of(3.9e-9f)).ok());
}

TEST_CASE("sections that share bytes are refused") {
  const uint32_t ops = small_image().word(offsetof(ImageHeader, ops));
  CHECK(open_with(offsetof(ImageHeader, data), ops).code == Code::image_layout);
  CHECK(open_with(offsetof(ImageHeader, names), ops).code == Code::image_layout);
}

TEST_CASE("arrays that share bytes are refused: training writes to them") {
  const auto offset_of = [](uint32_t op, size_t field) { return small_image().word(op_at(op, field)); };
  const uint32_t bias = offset_of(0, offsetof(OpRecord, bias_offset));
  CHECK(open_with(op_at(0, offsetof(OpRecord, scale_offset)), bias).code == Code::op_data);
  CHECK(open_with(op_at(2, offsetof(OpRecord, bias_offset)), bias).code == Code::op_data);
  CHECK(open_with(op_at(2, offsetof(OpRecord, weight_offset)), bias).index() == 2);
}

TEST_CASE("arrays off their alignment are refused, though their bytes are free") {
  // Each array is followed by padding of at least 8 bytes.
  for (const size_t field : {offsetof(OpRecord, weight_offset), offsetof(OpRecord, bias_offset)}) {
    for (const uint32_t step : {4u, 8u}) {
      const uint32_t op = field == offsetof(OpRecord, weight_offset) ? 0 : 2;
      const uint32_t offset = small_image().word(op_at(op, field));
      CHECK(open_with(op_at(op, field), offset).ok());
      CHECK(open_with(op_at(op, field), offset + step).code == Code::op_data);
    }
  }
}

TEST_CASE("a tensor that no op makes may lie unused, but not be read") {
  const auto code = [](uint32_t read) {
    ImageBuilder builder;
    builder.add_tensor({2, 2, 1});
    builder.add_tensor({2, 2, 1});  // made by nobody
    builder.add_tensor({1, 1, 4});
    builder.add_op(plain_op(OpKind::reshape, read, 2));
    return status_of(builder.build()).code;
  };
  CHECK(code(0) == Code::ok);
  CHECK(code(1) == Code::op_tensor);
}

TEST_CASE("tensors too large for a plan are refused") {
  ImageBuilder builder({{4096, 4096, 8}, {4096, 4096, 8}});
  builder.add_op(plain_op(OpKind::reshape, 0, 1));
  const Status status = status_of(builder.build());
  CHECK(status.code == Code::tensor_shape);
  CHECK(status.index() == 1);
}

TEST_CASE("a pool that rescales is refused") {
  CHECK(open_with(tensor_at(2, offsetof(TensorRecord, zero_point)), 0).code == Code::op_quantization);
}

TEST_CASE("a window of padding alone is refused") {
  const auto code = [](const Window& window, int32_t pad_bottom, int32_t pad_right, const Shape& out) {
    ImageBuilder builder;
    builder.add_tensor({4, 4, 1});
    builder.add_tensor(out);
    builder.add_op(window_op(OpKind::average_pool, 0, 1, window, pad_bottom, pad_right));
    return status_of(builder.build()).code;
  };
  CHECK(code({2, 2, 2, 2, 0, 0}, 0, 0, {2, 2, 1}) == Code::ok);
  CHECK(code({2, 2, 2, 2, 0, 0}, 2, 0, {3, 2, 1}) == Code::op_geometry);
  CHECK(code({2, 2, 2, 2, 0, 0}, 0, 2, {2, 3, 1}) == Code::op_geometry);
  CHECK(code({2, 2, 2, 2, 2, 0}, 0, 0, {3, 2, 1}) == Code::op_geometry);
  CHECK(code({2, 2, 2, 2, 0, 2}, 0, 0, {2, 3, 1}) == Code::op_geometry);
}

TEST_CASE("a block that names an op without weights is refused") {
  const size_t layers = small_image().word(offsetof(ImageHeader, block_layers));
  CHECK(open_with(layers, 1).code == Code::block_layer);
  CHECK(open_with(layers, 2).code == Code::block_layer);  // twice the same
  CHECK(open_with(layers, 0xFFFFFFFFu).code == Code::block_layer);
  CHECK(open_with(offsetof(ImageHeader, block_layers) + 4, 1).code == Code::block_layer);
}

TEST_CASE("every code has a message of its own") {
  std::vector<std::string> messages;
  for (int32_t code = 0; code <= static_cast<int32_t>(Code::cancelled); ++code) {
    messages.emplace_back(message(static_cast<Code>(code)));
  }
  std::sort(messages.begin(), messages.end());
  CHECK(std::adjacent_find(messages.begin(), messages.end()) == messages.end());
  CHECK(std::find(messages.begin(), messages.end(), "unknown status") == messages.end());
  CHECK(std::string(message(static_cast<Code>(999))) == "unknown status");
}

// Shapes that an op may join, by example.
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
