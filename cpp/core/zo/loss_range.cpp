#include "core/zo/loss_range.hpp"

#include "core/zo/loss_units.hpp"

namespace pmt {
namespace {

constexpr float largest_squared_error = static_cast<float>(largest_loss) / loss_one;

float value_of(const TensorRecord& output, int32_t stored) {
  return output.scale * static_cast<float>(stored - output.zero_point);
}

}  // namespace

int32_t loss_shift(Loss loss, const TensorRecord& output) {
  if (loss != Loss::squared_error) return 0;
  const float range = value_of(output, 127) - value_of(output, -128);
  if (range * range <= largest_squared_error) return 0;
  int32_t shift = 0;
  for (float rest = 4.0f * range * range; rest > largest_squared_error && shift < largest_loss_shift; rest *= 0.5f) {
    ++shift;
  }
  return shift;
}

int64_t in_loss_units(int64_t sum, int32_t shift) {
  const int64_t most = INT64_MAX >> shift;
  if (sum > most) return INT64_MAX;
  return sum < -most ? -INT64_MAX : sum * (int64_t{1} << shift);
}

TargetRange target_range(const TensorRecord& output) {
  const float squared = largest_squared_error * static_cast<float>(1 << loss_shift(Loss::squared_error, output));
  const float difference = __builtin_sqrtf(squared);
  return {value_of(output, 127) - difference, value_of(output, -128) + difference};
}

}  // namespace pmt
