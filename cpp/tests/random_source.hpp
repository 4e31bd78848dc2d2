// Seeded test data: the same on every standard library, which <random>'s distributions are not. Draw in statements of
// their own: the order of a call's arguments is the compiler's.
#pragma once

#include <cstdint>
#include <random>
#include <vector>

namespace pmt::tests {

class RandomSource {
 public:
  explicit RandomSource(uint64_t seed) : engine_(seed) {}

  uint64_t bits() { return engine_(); }

  // low .. high, both included.
  int32_t integer(int32_t low, int32_t high) {
    const auto span = static_cast<uint64_t>(static_cast<int64_t>(high) - low + 1);
    return static_cast<int32_t>(low + static_cast<int64_t>(bits() % span));
  }

  bool chance(int32_t one_in) { return integer(1, one_in) == 1; }

  double real(double low, double high) {
    return low + (high - low) * static_cast<double>(bits() >> 11) / 9007199254740992.0;
  }

  template <typename Value>
  Value pick(const std::vector<Value>& values) {
    return values[static_cast<size_t>(integer(0, static_cast<int32_t>(values.size()) - 1))];
  }

  std::vector<int8_t> bytes(int64_t count, int32_t low = -128, int32_t high = 127) {
    std::vector<int8_t> values(static_cast<size_t>(count));
    for (int8_t& value : values) value = static_cast<int8_t>(integer(low, high));
    return values;
  }

 private:
  std::mt19937_64 engine_;
};

}  // namespace pmt::tests
