#include "board/chip.hpp"

#include <cstring>

#include "drivers/cortex_m/processor.hpp"
#include "drivers/cortex_m/registers.hpp"

namespace pmt::test {

using stm32::description;

Chip::Chip(uint32_t reset_flags) : debug_(description.watchdog.freeze) {
  if (description.sdmmc.generation == stm32::SdmmcGeneration::f7) {
    f7_ = std::make_unique<F7>();
  } else {
    h7_ = std::make_unique<H7>();
  }
  chip().at(description.reset.address) = reset_flags;
  bus().attach(cortex_m::SYST_CSR, 16, &systick_);
  bus().attach(description.usart, 0x400, &usart_);
  bus().attach(description.watchdog.base, 0x400, &watchdog_);
  bus().attach(description.watchdog.freeze, 4, &debug_);
  bus().attach(description.led.port, 0x400, &led_);
}

// A feed every 8 ms of the counter: 256 / 32 kHz.
void Chip::pass_time(uint32_t now) {
  if (now > end_) throw EndOfTest();
  if (watchdog_.runs && now - watchdog_.fed > 8 * (watchdog_.at(8) + 1)) throw ChipReset();
}

uint32_t Chip::SysTick::read(uint32_t offset) {
  const uint32_t now = chip.milliseconds();
  chip.pass_time(now);
  if (offset != 0 || !enabled || now == seen) return enabled ? 7 : 0;
  seen = now;
  return 7 | cortex_m::SYST_CSR_COUNTFLAG;
}

void Chip::SysTick::write(uint32_t offset, uint32_t value) {
  if (offset == 0) enabled = (value & cortex_m::SYST_CSR_ENABLE) != 0;
}

void Chip::Watchdog::write(uint32_t offset, uint32_t value) {
  if (offset == 0 && value == 0xCCCC) runs = true;
  if (offset == 0 && (value == 0xAAAA || value == 0xCCCC)) fed = chip.milliseconds();
  RegisterModel::write(offset, value);
}

void Chip::Led::write(uint32_t offset, uint32_t value) {
  if (offset == 0x18 && value != level) {
    level = value;
    ++chip.led_changes;
  }
  RegisterModel::write(offset, value);
}

}  // namespace pmt::test

namespace pmt::cortex_m {

void enable_caches() {}
void clean_data_cache(const void*, size_t) {}
board::Memory arena(uint8_t* memory, size_t bytes) { return {memory, bytes, bytes}; }
board::StackUse stack_use() { return {1, 2}; }

}  // namespace pmt::cortex_m
