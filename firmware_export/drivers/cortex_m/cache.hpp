// Caches of a Cortex-M7.
#pragma once

namespace pmt::cortex_m {

// Empties and switches on the instruction and the data cache.
void enable_caches();

}  // namespace pmt::cortex_m
