#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <vector>

#include "core/learn/schedule.hpp"
#include "reference/random.hpp"

using namespace pmt;

namespace {

std::vector<int32_t> shuffled(uint32_t seed, uint32_t epoch, int32_t count) {
  std::vector<int32_t> places(static_cast<size_t>(count));
  std::iota(places.begin(), places.end(), 0);
  shuffle(seed, epoch, places.data(), count);
  return places;
}

}  // namespace

TEST_CASE("an order is that of Fisher and Yates by the numbers of seed and epoch") {
  std::vector<int32_t> expected(40);
  std::iota(expected.begin(), expected.end(), 0);
  uint32_t drawn = 0;
  for (size_t i = 39; i > 0; --i, ++drawn) {
    const uint32_t purpose = 4u << 16;
    const uint32_t word = reference::philox4x32({drawn / 4, 0, 0, purpose}, {7, 3})[drawn % 4];
    std::swap(expected[i], expected[static_cast<size_t>((uint64_t{word} * (i + 1)) >> 32)]);
  }
  CHECK(shuffled(7, 3, 40) == expected);
  CHECK(shuffled(7, 4, 40) != expected);
  CHECK(shuffled(8, 3, 40) != expected);
}

TEST_CASE("an order holds each place once, and few places are an order as well") {
  std::vector<int32_t> places = shuffled(1, 2, 1001);
  std::sort(places.begin(), places.end());
  for (int32_t i = 0; i < 1001; ++i) CHECK(places[static_cast<size_t>(i)] == i);
  CHECK(shuffled(1, 2, 1) == std::vector<int32_t>{0});
  CHECK(shuffled(1, 2, 0).empty());
}

TEST_CASE("each place is as likely as another") {
  std::array<std::array<int, 5>, 5> counts = {};
  for (uint32_t epoch = 0; epoch < 5000; ++epoch) {
    const std::vector<int32_t> places = shuffled(11, epoch, 5);
    for (size_t at = 0; at < 5; ++at) ++counts[at][static_cast<size_t>(places[at])];
  }
  for (const auto& row : counts) {
    for (const int count : row) CHECK(std::abs(count - 1000) < 4 * 29);  // four standard deviations
  }
}

TEST_CASE("a rate falls along a cosine, from the first one to the final one") {
  for (const float final_fraction : {0.0f, 0.1f, 1.0f}) {
    const RateSchedule schedule = {0.3f, final_fraction, 1000};
    CHECK(learning_rate(schedule, 0) == 0.3f);
    CHECK(learning_rate(schedule, 1000) == 0.3f * final_fraction);
    float last = 1.0f;
    for (int64_t step = 0; step <= 1000; ++step) {
      const double fraction = 0.5 * (1.0 + std::cos(3.14159265358979 * static_cast<double>(step) / 1000.0));
      const double exact = 0.3 * (final_fraction + (1.0 - final_fraction) * fraction);
      const float rate = learning_rate(schedule, step);
      CHECK(std::abs(rate - exact) < 6e-8);
      CHECK(rate <= last);
      last = rate;
    }
  }
}

TEST_CASE("a schedule can have more steps than int32 counts") {
  const RateSchedule schedule = {1.0f, 0.0f, int64_t{1} << 40};
  CHECK(learning_rate(schedule, int64_t{1} << 39) == 0.5f);
  CHECK(learning_rate(schedule, (int64_t{1} << 40) - 1) < 1e-20f);
}
