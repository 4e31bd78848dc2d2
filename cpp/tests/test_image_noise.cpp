#include <doctest/doctest.h>

#include "core/align/image_noise.hpp"
#include "reference/alignment.hpp"
#include "tests/random_source.hpp"

using namespace pmt;
using namespace pmt::tests;

namespace {

using Values = std::vector<float>;

constexpr WindowGroups window_of(int32_t kernel_h, int32_t kernel_w) { return {1, 1, kernel_h, kernel_w}; }

float share(const WindowGroups& groups, const Values& clean, const Values& found) {
  return noise_share(groups, clean.data(), found.data());
}

float strength(const Values& shares) {
  return reliability_strength(shares.data(), static_cast<int32_t>(shares.size()));
}

reference::Image probe_of(const reference::Image& image, const reference::Image& other) {
  const Shape sizes = reference::shape_of(image);
  TensorRecord shape = {};
  shape.height = sizes.height;
  shape.width = sizes.width;
  shape.channels = sizes.channels;
  std::vector<int32_t> sums(static_cast<size_t>(noise_probe_sums(shape)));
  reference::Image probe = reference::make_image(sizes);
  add_noise_probe(shape, image.data(), other.data(), sums.data(), probe.data());
  return probe;
}

}  // namespace

TEST_CASE("noise probes are those of the definition") {
  RandomSource random(7);
  for (int32_t i = 0; i < 200; ++i) {
    const Shape shape = {random.integer(1, 40), random.integer(1, 40), random.integer(1, 3)};
    CAPTURE(shape.height);
    CAPTURE(shape.width);
    reference::Image image = reference::make_image(shape), other = image;
    const auto low = random.integer(-128, 0), high = random.integer(0, 127);
    for (int8_t& value : image) value = static_cast<int8_t>(random.integer(low, high));
    for (int8_t& value : other) value = static_cast<int8_t>(random.integer(low, high));
    CHECK((probe_of(image, other) == reference::noise_probe(image, other)));
  }
}

TEST_CASE("a bright pixel adds what it has beyond its square, and a flat image nothing") {
  reference::Image flat = xt::zeros<int8_t>({8, 8, 1}), pixel = flat;
  pixel(4, 4, 0) = 100;
  CHECK((probe_of(pixel, flat) == pixel));
  reference::Image details = flat;
  xt::view(details, xt::range(3, 6), xt::range(3, 6), 0) = -11;  // a ninth of it
  details(4, 4, 0) = 89;
  CHECK((probe_of(flat, pixel) == details));
}

TEST_CASE("the noise share is the part of the roughness that clean images lack") {
  // Distances (0, 0), (0, 1), (1, -1), (1, 0), (1, 1): roughness 0.2 and 0.5.
  const Values clean = {10, 8, 0, 8, 0}, rough = {5, 3, 0, 2, 0};
  CHECK(share(window_of(2, 2), clean, rough) == doctest::Approx(0.6));
  CHECK(share(window_of(2, 2), clean, clean) == 0.0f);
  CHECK(share(window_of(2, 2), rough, clean) == 0.0f);
}

TEST_CASE("the noise share goes by the farthest places of a window") {
  for (const WindowGroups& window : {window_of(1, 3), window_of(3, 1)}) {
    CHECK(share(window, {10, 0, 9}, {10, 9, 5}) == doctest::Approx(0.8));
  }
}

TEST_CASE("the noise share leaves out pairs of channels, and groups that are constant") {
  // Variances 6 and 2, at distance 1 3 and 1.
  CHECK(share({1, 2, 1, 2}, {6, 9, 9, 2, 5, 9, 9, 1}, {6, 0, 0, 2, 3, 0, 0, 1}) == doctest::Approx(0.5));
  const WindowGroups two = {2, 1, 1, 2};
  CHECK(share(two, {0, 0, 4, 3}, {0, 0, 4, 2}) == doctest::Approx(0.5));
  CHECK(share(two, {0, 0, 4, 3}, {0, 0, 0, 0}) == 0.0f);
}

TEST_CASE("the strength of reliability goes by what is certain of the shares, beyond a margin") {
  CHECK(strength({0.25f, 0.25f, 0.25f}) == doctest::Approx(0.5));  // 2.5 times 0.2 beyond the margin
  CHECK(strength({0.2f, 0.3f}) == doctest::Approx(0.25));          // the standard error is 0.05
  CHECK(strength({0.9f, 0.9f}) == 1.0f);
  CHECK(strength({0.04f, 0.04f}) == 0.0f);
  CHECK(strength({0.9f}) == 0.0f);
}
