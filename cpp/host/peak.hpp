// The speed that this machine could have if a forward were nothing but multiply-accumulates.
#pragma once

#include <cstdint>

namespace pmt::host {

struct Peak {
  const char* instruction;  // of the loop
  double gmacs;             // 10^9 int8 multiply-accumulates a second, of all threads together
};

// Runs a loop that touches registers only, with the best exact dot product this CPU has, on a number
// of threads at once (0 = all). Takes some milliseconds; the best of several runs.
Peak measure_peak(int32_t threads);

}  // namespace pmt::host
