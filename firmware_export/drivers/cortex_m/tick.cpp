#include "drivers/cortex_m/tick.hpp"

#include "drivers/io.hpp"

namespace pmt::cortex_m {
namespace {

constexpr uint32_t SYST_CSR = 0xE000E010;
constexpr uint32_t SYST_RVR = 0xE000E014;
constexpr uint32_t SYST_CVR = 0xE000E018;
constexpr uint32_t on_with_interrupt_from_core_clock = 7;

volatile uint32_t ticks = 0;

}  // namespace

void start_tick(uint32_t core_hz) {
  ticks = 0;
  io::write(SYST_RVR, core_hz / 1000 - 1);
  io::write(SYST_CVR, 0);
  io::write(SYST_CSR, on_with_interrupt_from_core_clock);
}

uint32_t milliseconds() { return ticks; }

extern "C" __attribute__((used)) void tick_handler() { ticks = ticks + 1; }

}  // namespace pmt::cortex_m
