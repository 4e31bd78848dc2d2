#include "drivers/cortex_m/marks.hpp"

#include "common/high_water.hpp"

// From link.ld.
extern "C" uint32_t stack_limit[];
extern "C" uint32_t stack_top[];
extern "C" uint8_t arena_end[];

namespace pmt::cortex_m {

board::Memory arena(uint8_t* memory, size_t bytes) { return {memory, bytes, static_cast<size_t>(arena_end - memory)}; }

board::StackUse stack_use() {
  const uint32_t* deepest = stack_limit;
  while (deepest < stack_top && *deepest == firmware::paint_word) ++deepest;
  return {static_cast<size_t>(stack_top - deepest) * sizeof(uint32_t),
          static_cast<size_t>(stack_top - stack_limit) * sizeof(uint32_t)};
}

}  // namespace pmt::cortex_m
