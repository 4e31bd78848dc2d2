#include "core/learn/schedule.hpp"

#include "core/base/arithmetic.hpp"
#include "core/base/random.hpp"

namespace pmt {
namespace {

// (1 - cos(pi x)) / 2 for x of 0 to 1/2: a Taylor series, whose error is below 2e-8.
float raised_cosine(float x) {
  const float square = x * x;
  constexpr float terms[] = {-9.64787155e-4f, 1.29034457e-2f, -0.117665315f, 0.667631384f, -2.02935606f, 2.46740110f};
  float sum = 0.0f;
  for (const float term : terms) sum = (sum + term) * square;
  return sum;
}

}  // namespace

void shuffle(uint32_t seed, uint32_t epoch, int32_t* places, int32_t count) {
  const StreamId id = {seed, epoch, 0, 0, 0, Purpose::order};
  Random128 numbers = {};
  for (int32_t i = count - 1; i > 0; --i) {
    const auto drawn = static_cast<uint32_t>(count - 1 - i);
    if (drawn % 4 == 0) numbers = random_block(id, drawn / 4);
    const uint64_t product = static_cast<uint64_t>(numbers.word[drawn % 4]) * (static_cast<uint32_t>(i) + 1);
    const auto other = static_cast<int32_t>(product >> 32);
    const int32_t kept = places[i];
    places[i] = places[other];
    places[other] = kept;
  }
}

float learning_rate(const RateSchedule& schedule, int64_t step) {
  const float passed = to_float(step) / to_float(schedule.steps);
  const float left = 1.0f - passed;
  const float fraction = passed <= 0.5f ? 1.0f - raised_cosine(passed) : raised_cosine(left);
  return schedule.first * (schedule.final_fraction + (1.0f - schedule.final_fraction) * fraction);
}

}  // namespace pmt
