// Stands in for what an export writes.
#pragma once

#include <cstddef>

namespace pmt::exported {

constexpr size_t arena_bytes = 64;

}  // namespace pmt::exported
