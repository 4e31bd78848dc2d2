#include <doctest/doctest.h>

#include "reference/add.hpp"
#include "tests/linear_case.hpp"

using namespace pmt;
using namespace pmt::tests;

namespace {

std::vector<int8_t> kernel_add(const reference::Quantised& a, const reference::Quantised& b, float output_scale,
                               const reference::OutputRange& range) {
  std::vector<int8_t> output(a.values.size());
  portable_kernels().add({{a.values.data(), b.values.data()},
                          output.data(),
                          1,
                          static_cast<int32_t>(output.size()),
                          {0, 0},
                          0,
                          {a.zero_point, b.zero_point},
                          range.zero_point,
                          {a.scale, b.scale},
                          output_scale,
                          range.low,
                          range.high});
  return output;
}

}  // namespace

TEST_CASE("add gives the bytes of its definition") {
  RandomSource random(7);
  for (int i = 0; i < 200; ++i) {
    const Shape shape = {random.integer(1, 5), random.integer(1, 5), random.pick<int32_t>({1, 3, 8, 16, 17, 48})};
    const int64_t count = static_cast<int64_t>(shape.height) * shape.width * shape.channels;
    const auto operand = [&] {
      return reference::Quantised{image_of(random.bytes(count), shape), random.integer(-128, 127),
                                  static_cast<float>(random.real(0.001, 0.2))};
    };
    const reference::Quantised a = operand(), b = operand();
    const int32_t low = random.integer(-128, 0);
    const reference::OutputRange range = {random.integer(-128, 127), low, random.integer(1, 127)};
    const auto output_scale = static_cast<float>(random.real(0.001, 0.3));
    CHECK(kernel_add(a, b, output_scale, range) == values_of(reference::add(a, b, output_scale, range)));
  }
}

TEST_CASE("add of literal numbers: halves go to even, large sums saturate") {
  const auto row = [](const std::vector<int8_t>& values) {
    return image_of(values, {1, static_cast<int32_t>(values.size()), 1});
  };
  const reference::Quantised a = {row({1, 2, -1, 127, -128}), 0, 0.5f};
  const reference::Quantised b = {row({10, 11, 10, 110, -10}), 10, 0.25f};
  // 0.5, 1.25, -0.5, 88.5, -69 in output steps of 1, plus 3.
  const std::vector<int8_t> expected = {3, 4, 3, 90, -66};
  CHECK(kernel_add(a, b, 1.0f, {3, -128, 90}) == expected);
  CHECK(values_of(reference::add(a, b, 1.0f, {3, -128, 90})) == expected);
  const std::vector<int8_t> saturated = {127, 127, -128, 127, -128};
  CHECK(kernel_add(a, b, 1e-12f, {0, -128, 127}) == saturated);
  CHECK(values_of(reference::add(a, b, 1e-12f, {0, -128, 127})) == saturated);
}
