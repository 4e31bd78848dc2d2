// Questions about the parts that are linked, answered while compiling. Each set has a file of its own: only what asks
// for it is compiled again where another model or other options change it.
#pragma once

#include <cstdint>

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
