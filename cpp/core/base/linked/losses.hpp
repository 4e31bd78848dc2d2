// All are linked. `pmt export` writes this file anew, with a bit for the loss of its options.
#pragma once

#include <cstdint>

namespace pmt::linked {
constexpr uint32_t losses = ~0u;
}
