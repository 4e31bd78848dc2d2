// All are linked. `pmt export` writes this file anew, with a bit for each op of its model.
#pragma once

#include <cstdint>

namespace pmt::linked {
constexpr uint32_t ops = ~0u;
}
