// The parts that are linked: all, or in a project that pmt exports those that its model and options use.
#pragma once

#include <cstdint>

#if __has_include("model/linked.hpp")
#include "model/linked.hpp"
#else
namespace pmt::linked {

// A bit for each enumerator; of depthwise_sides for each side of a kernel.
constexpr uint32_t ops = ~0u;
constexpr uint32_t depthwise_sides = ~0u;
constexpr uint32_t estimators = ~0u;
constexpr uint32_t losses = ~0u;
constexpr uint32_t generators = ~0u;
constexpr bool input_search = true;  // of a learner

}  // namespace pmt::linked
#endif

namespace pmt {

template <typename Part>
constexpr bool is_linked(uint32_t parts, Part part) {
  return (parts >> static_cast<uint32_t>(part) & 1u) != 0;
}

// Whether a value is this part, known while compiling where the part is not linked, or no other is.
template <typename Part>
constexpr bool is_part(uint32_t parts, Part value, Part part) {
  if (!is_linked(parts, part)) return false;
  return parts == 1u << static_cast<uint32_t>(part) || value == part;
}

}  // namespace pmt
