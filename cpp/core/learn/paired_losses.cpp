#include "core/learn/paired_losses.hpp"

namespace pmt {
namespace {

Unsigned128 sum_of(const Unsigned128& a, const Unsigned128& b) {
  const uint64_t low = a.low + b.low;
  return {a.high + b.high + (low < a.low ? 1u : 0u), low};
}

// By halves: no target of 32 bits has a product of 128.
Unsigned128 product_of(uint64_t a, uint64_t b) {
  const uint64_t mask = 0xFFFFFFFFu;
  const uint64_t low = (a & mask) * (b & mask);
  const uint64_t first = (a >> 32) * (b & mask) + (low >> 32);
  const uint64_t second = (a & mask) * (b >> 32) + (first & mask);
  return {(a >> 32) * (b >> 32) + (first >> 32) + (second >> 32), (second << 32) | (low & mask)};
}

Unsigned128 times(const Unsigned128& value, uint64_t factor) {
  Unsigned128 product = product_of(value.low, factor);
  product.high += value.high * factor;
  return product;
}

bool is_less(const Unsigned128& a, const Unsigned128& b) { return a.high != b.high ? a.high < b.high : a.low < b.low; }

}  // namespace

void PairedLosses::add(int32_t loss, int32_t than) {
  const int64_t difference = int64_t{loss} - than;
  const auto size = static_cast<uint64_t>(difference < 0 ? -difference : difference);
  ++count_;
  sum_ += difference;
  squares_ = sum_of(squares_, product_of(size, size));
}

bool PairedLosses::is_worse(int32_t errors) const {
  if (sum_ <= 0) return false;
  const auto sum = static_cast<uint64_t>(sum_), count = static_cast<uint64_t>(count_);
  const auto square = static_cast<uint64_t>(errors) * static_cast<uint64_t>(errors);
  return is_less(times(squares_, square * count), times(product_of(sum, sum), count - 1 + square));
}

}  // namespace pmt
