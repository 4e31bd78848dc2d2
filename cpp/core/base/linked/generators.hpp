// All are linked. `pmt export` writes this file anew, with a bit for the generator of its options.
#pragma once

#include <cstdint>

namespace pmt::linked {
constexpr uint32_t generators = ~0u;
}
