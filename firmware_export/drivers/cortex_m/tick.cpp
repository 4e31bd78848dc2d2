#include "drivers/cortex_m/processor.hpp"
#include "drivers/cortex_m/registers.hpp"
#include "drivers/io.hpp"

namespace pmt::cortex_m {
namespace {

volatile uint32_t ticks = 0;

// Reading clears the flag: a millisecond is counted once, by whoever looks first.
void count() {
  if ((io::read(SYST_CSR) & SYST_CSR_COUNTFLAG) != 0) ticks = ticks + 1;
}

}  // namespace

void start_tick(uint32_t core_hz) {
  ticks = 0;
  io::write(SYST_RVR, core_hz / 1000 - 1);
  io::write(SYST_CVR, 0);
  io::write(SYST_CSR, SYST_CSR_ENABLE | SYST_CSR_TICKINT | SYST_CSR_CLKSOURCE);
}

uint32_t milliseconds() {
  count();
  return ticks;
}

extern "C" __attribute__((used)) void tick_handler() { count(); }

}  // namespace pmt::cortex_m
