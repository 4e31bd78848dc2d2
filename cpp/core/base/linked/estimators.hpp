// All are linked. `pmt export` writes this file anew, with a bit for each estimator of its options.
#pragma once

#include <cstdint>

namespace pmt::linked {
constexpr uint32_t estimators = ~0u;
}
