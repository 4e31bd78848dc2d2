// A loop that is unrolled from the start: GCC keeps a small array in registers only where every index
// is a constant before it looks at memory.
#pragma once

#include <cstdint>
#include <utility>

// For a tile that wants the processor's registers: PMT_INLINE stands after the parameters of a lambda
// that shall be part of the loop, PMT_FLATTEN makes all it calls part of a function, PMT_UNROLL leaves
// constant indices. Simulated instructions and checks of addresses are long: those are compiled without.
#if defined(PMT_SIMULATED_INSTRUCTIONS) || defined(__SANITIZE_ADDRESS__)
#define PMT_PLAIN_LOOPS
#endif
#ifdef PMT_PLAIN_LOOPS
#define PMT_INLINE
#define PMT_FLATTEN [[gnu::noinline]]
#define PMT_UNROLL
#else
#define PMT_INLINE __attribute__((always_inline))
#define PMT_FLATTEN [[gnu::noinline, gnu::flatten]]
#ifdef __clang__
#define PMT_UNROLL _Pragma("unroll")
#else
#define PMT_UNROLL _Pragma("GCC unroll 64")
#endif
#endif

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

// The same where the indices need not be constants.
template <int32_t Count, typename Body>
PMT_INLINE inline void repeated(Body body) {
#ifdef PMT_PLAIN_LOOPS
  for (int32_t i = 0; i < Count; ++i) body(i);
#else
  unrolled<Count>(body);
#endif
}

// The same pointer, of which the compiler forgets where it comes from: what lies there is loaded where
// it is used, and leaves its registers to the loops before that.
template <typename T>
PMT_INLINE inline T* opaque(T* pointer) {
  asm("" : "+r"(pointer));
  return pointer;
}

}  // namespace pmt::host
