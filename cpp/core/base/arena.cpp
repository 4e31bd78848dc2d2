#include "core/base/arena.hpp"

namespace pmt {

void* Arena::take_bytes(uint64_t bytes, size_t alignment) {
  const size_t gap = (alignment - used_ % alignment) % alignment;
  const size_t start = gap > SIZE_MAX - used_ ? SIZE_MAX : used_ + gap;
  used_ = start;
  // In 64 bits, then saturated: a device's size_t could wrap and make too small an arena fit.
  const uint64_t whole = (bytes + 15) / 16 * 16;
  used_ = whole > SIZE_MAX - used_ ? SIZE_MAX : used_ + static_cast<size_t>(whole);
  if (memory_ == nullptr || used_ > capacity_) return nullptr;
  return memory_ + start;
}

}  // namespace pmt
