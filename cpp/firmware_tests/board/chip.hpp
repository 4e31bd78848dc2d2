// The chip of the board under test: clocks, serial line, LED, watchdog and SysTick, whose interrupt is never
// taken.
#pragma once

#include <memory>
#include <string>

#include "chip_models.hpp"
#include "drivers/stm32/board.hpp"

namespace pmt::test {

// Thrown out of the firmware: by the watchdog, or when a run has lasted long enough.
struct ChipReset {};
struct EndOfTest {};

class Chip {
 public:
  // The flags of the last reset, as in RCC_CSR or RCC_RSR.
  explicit Chip(uint32_t reset_flags);

  std::string& sent() { return usart_.sent; }
  int32_t led_changes = 0;
  uint32_t led() { return led_.level; }  // as written to BSRR
  void insert_card(bool is_in) {
    const stm32::Pin& detect = stm32::description.card_detect;
    chip().at(detect.port + 0x10) = is_in ? 0 : 1u << detect.number;
  }
  bool watchdog_runs() const { return watchdog_.runs; }
  uint32_t milliseconds() { return bus().milliseconds(); }
  void end_after(uint32_t milliseconds) { end_ = milliseconds; }
  uint32_t reset_flags() { return chip().at(stm32::description.reset.address); }
  uint32_t freezes() { return debug_.at(stm32::description.watchdog.freeze); }

 private:
  struct SysTick : Peripheral {
    explicit SysTick(Chip& chip) : chip(chip) {}
    uint32_t read(uint32_t offset) override;
    void write(uint32_t offset, uint32_t value) override;
    Chip& chip;
    bool enabled = false;
    uint32_t seen = 0;  // milliseconds
  };
  struct Watchdog : RegisterModel {
    explicit Watchdog(Chip& chip) : RegisterModel(0), chip(chip) {}
    void write(uint32_t offset, uint32_t value) override;
    Chip& chip;
    bool runs = false;
    uint32_t fed = 0;  // milliseconds
  };
  struct Led : RegisterModel {
    explicit Led(Chip& chip) : RegisterModel(0), chip(chip) {}
    void write(uint32_t offset, uint32_t value) override;
    Chip& chip;
    uint32_t level = 0;
  };
  SimulatedBus& bus() { return f7_ ? f7_->bus : h7_->bus; }
  RegisterModel& chip() { return f7_ ? f7_->chip : h7_->chip; }
  void pass_time(uint32_t now);

  std::unique_ptr<F7> f7_;
  std::unique_ptr<H7> h7_;
  RegisterModel debug_;
  SysTick systick_{*this};
  SerialLine usart_;
  Watchdog watchdog_{*this};
  Led led_{*this};
  uint32_t end_ = 0xFFFFFFFF;
};

}  // namespace pmt::test
