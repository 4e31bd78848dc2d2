#include <doctest/doctest.h>

#include "core/base/crc32.hpp"
#include "tests/engine.hpp"
#include "tests/random_network.hpp"
#include "tests/reference_network.hpp"

using namespace pmt;
using namespace pmt::tests;

namespace {

void compare(RandomSource& random, AlignedBytes image) {
  const OwnedModel model(std::move(image));
  Engine engine(model);
  const std::vector<OpParameters> parameters = parameters_of(model);
  const std::vector<int8_t> values = random.bytes(element_count(model.input()));
  const std::vector<reference::Image> tensors = run_reference(model, parameters, values);
  std::copy(values.begin(), values.end(), engine.tensor(model.header().input_tensor));
  for (int32_t i = 0; i < model.op_count(); ++i) {
    CAPTURE(i);
    forward(engine.network(), engine.plan(), engine.activations(), 1, i, i + 1);
    const reference::Image& expected = tensors[model.op(i).output];
    CHECK(std::equal(expected.begin(), expected.end(), engine.tensor(model.op(i).output)));
  }
  for (const bool int8_logits : {false, true}) {
    CHECK(engine.logits(values, int8_logits) == reference_logits(model, parameters, tensors, int8_logits));
  }
}

}  // namespace

TEST_CASE("every tensor of random networks has the bytes of the definitions") {
  RandomSource random(16);
  for (int i = 0; i < 60; ++i) {
    CAPTURE(i);
    for (const Head head : {Head::fully_connected, Head::conv2d, Head::pool}) {
      compare(random, random_network(random, random.integer(0, 8), head));
    }
  }
}

TEST_CASE("a linear head is the one whose window covers its input") {
  const auto with_head = [](OpKind kind, const Window& window, const Shape& in, const Shape& out) {
    ImageBuilder builder;
    builder.add_tensor(in);
    builder.add_tensor(out);
    builder.add_op(window_op(kind, 0, 1, window, 0, 0), constant_data(4096, 64));
    return has_linear_head(OwnedModel(builder.build()));
  };
  CHECK(with_head(OpKind::fully_connected, {1, 1, 1, 1, 0, 0}, {2, 2, 4}, {1, 1, 10}));
  CHECK(with_head(OpKind::conv2d, {1, 1, 1, 1, 0, 0}, {1, 1, 4}, {1, 1, 10}));
  CHECK(with_head(OpKind::conv2d, {3, 2, 1, 1, 0, 0}, {3, 2, 4}, {1, 1, 10}));
  CHECK(!with_head(OpKind::conv2d, {1, 1, 1, 1, 0, 0}, {2, 2, 4}, {2, 2, 10}));
  CHECK(!with_head(OpKind::conv2d, {1, 1, 2, 2, 0, 0}, {2, 2, 4}, {1, 1, 10}));
  CHECK(!with_head(OpKind::depthwise_conv2d, {1, 1, 1, 1, 0, 0}, {1, 1, 4}, {1, 1, 4}));
}

TEST_CASE("a head with a fused activation is none, as its logits are not linear") {
  const auto with_clamp = [](int32_t zero_point, int32_t clamp_min, int32_t clamp_max) {
    ImageBuilder builder({{1, 1, 4}, {1, 1, 10, 0.05f, zero_point}});
    OpRecord op = plain_op(OpKind::fully_connected, 0, 1);
    op.clamp_min = clamp_min;
    op.clamp_max = clamp_max;
    builder.add_op(op, constant_data(40, 10));
    return has_linear_head(OwnedModel(builder.build()));
  };
  CHECK(with_clamp(-127, -128, 127));
  CHECK(!with_clamp(-128, -128, 127));
  CHECK(!with_clamp(0, 0, 127));
  CHECK(!with_clamp(0, -128, 60));
}

namespace {

uint32_t next_checksum(uint32_t before, const AlignedBytes& image) { return crc32(image.data(), image.size(), before); }

}  // namespace

TEST_CASE("a seed gives the same networks on every platform") {
  uint32_t bottlenecks = 0, networks = 0, dags = 0;
  for (uint64_t seed = 0; seed < 24; ++seed) {
    RandomSource first(seed), second(seed), third(seed);
    bottlenecks = next_checksum(bottlenecks, random_bottlenecks(first, 3, seed % 2 == 1));
    networks = next_checksum(networks, random_network(second, 4, static_cast<Head>(seed % 3)));
    dags = next_checksum(dags, random_dag(third, 6));
  }
  CHECK(bottlenecks == 0xEDAFA5CEu);
  CHECK(networks == 0xA71B588Cu);
  CHECK(dags == 0x2156D946u);
}
