// The rule by which one state of a model is worse than another: by losses of the same samples, in integers.
#pragma once

#include <cstdint>

namespace pmt {

struct Unsigned128 {
  uint64_t high, low;
};

class PairedLosses {
 public:
  static constexpr int32_t most_samples = 1 << 20;  // all sums and products stay inside 128 bits
  static constexpr int32_t most_errors = 8;

  // The losses of a sample in both states, fixed-point as in loss_units.hpp or in another unit that all share.
  void add(int32_t loss, int32_t than);

  // Whether the mean loss is higher by more than `errors` standard errors of the differences, sample by sample. With
  // sums S of them and Q of their squares, S > 0 and S^2 / n^2 > z^2 (Q - S^2 / n) / (n (n - 1)) is
  // S^2 (n - 1 + z^2) > z^2 n Q.
  bool is_worse(int32_t errors) const;

 private:
  int32_t count_ = 0;
  int64_t sum_ = 0;
  Unsigned128 squares_ = {0, 0};
};

}  // namespace pmt
