#include "drivers/cortex_m/stack.hpp"

// From link.ld.
extern "C" uint32_t stack_limit[];
extern "C" uint32_t stack_top[];

namespace pmt::cortex_m {

board::StackUse stack_use() {
  constexpr uint32_t unused_word = 0xA5A5A5A5u;
  const uint32_t* deepest = stack_limit;
  while (deepest < stack_top && *deepest == unused_word) ++deepest;
  return {static_cast<size_t>(stack_top - deepest) * sizeof(uint32_t),
          static_cast<size_t>(stack_top - stack_limit) * sizeof(uint32_t)};
}

}  // namespace pmt::cortex_m
