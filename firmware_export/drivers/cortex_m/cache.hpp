// Caches of a Cortex-M7.
#pragma once

#include <cstddef>

namespace pmt::cortex_m {

// Empties and switches on the instruction and the data cache. A data cache that a boot loader has left on
// stays as it is: it may hold what memory does not yet.
void enable_caches();
// Writes to memory what the data cache holds of a range.
void clean_data_cache(const void* begin, size_t bytes);

}  // namespace pmt::cortex_m
