// All are linked. `pmt export` writes this file anew, with a bit for each side of a kernel of its depthwise layers.
#pragma once

#include <cstdint>

namespace pmt::linked {
constexpr uint32_t depthwise_sides = ~0u;
}
