// A loop that is no loop from the start: GCC keeps a small array in registers only where every index
// is a constant before it looks at memory.
#pragma once

#include <cstdint>
#include <utility>

// Behind the parameters of a lambda that shall be part of the loop.
#define PMT_INLINE __attribute__((always_inline))

namespace pmt::host {

template <typename Body, int32_t... Index>
[[gnu::always_inline]] inline void unrolled(Body& body, std::integer_sequence<int32_t, Index...>) {
  (body(std::integral_constant<int32_t, Index>{}), ...);
}

// body(0) .. body(Count - 1), each index a std::integral_constant.
template <int32_t Count, typename Body>
[[gnu::always_inline]] inline void unrolled(Body body) {
  unrolled(body, std::make_integer_sequence<int32_t, Count>{});
}

}  // namespace pmt::host
