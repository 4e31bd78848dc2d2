// A board from reset on: after power-on, after a fault, after several.
#include <doctest/doctest.h>

#include <cstring>
#include <memory>
#include <string>

#include "chip_models.hpp"
#include "common/board.hpp"
#include "drivers/cortex_m/fault.hpp"
#include "drivers/cortex_m/processor.hpp"
#include "drivers/cortex_m/registers.hpp"
#include "drivers/stm32/board.hpp"

namespace pmt::test {

// Thrown out of the firmware: by the watchdog, or when a run has lasted long enough.
struct ChipReset {};
struct EndOfTest {};

// The chip of the board under test: clocks, serial line, LED, watchdog and SysTick, whose interrupt is never
// taken.
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

using namespace pmt;
using namespace pmt::test;

namespace {

bool is_f7() { return stm32::description.sdmmc.generation == stm32::SdmmcGeneration::f7; }
uint32_t power_on() { return is_f7() ? 0x0E000000 : 0x00E80000; }
uint32_t by_watchdog() { return is_f7() ? 0x24000000 : 0x04400000; }
uint32_t by_button() { return is_f7() ? 0x04000000 : 0x00400000; }

std::string banner(const std::string& cause) {
  return (is_f7() ? "STM32F746G-DISCO: 216 MHz" : "STM32H7B3I-DK: 280 MHz") + (", started by " + cause + "\r\n");
}

constexpr cortex_m::Fault bus_fault = {5, 0x08001234, 0x08000021, 0x00008200, 0x40000000, 0, 0x60000000, 0};
const std::string described =
    "bus fault (exception 5, pc 08001234, lr 08000021, cfsr 00008200, hfsr 40000000, mmfar 00000000, "
    "bfar 60000000)\r\n";

// The handler of a fault, until the watchdog resets the chip.
void fail(const cortex_m::Fault& fault) {
  cortex_m::keep(fault);
  firmware::Line line;
  cortex_m::describe(fault, line.text("error: "));
  CHECK_THROWS_AS(cortex_m::after_fault(line), ChipReset);
}

// A start that fails by a fault; what it sent.
std::string start_and_fail(uint32_t reset_flags) {
  Chip chip(reset_flags);
  board::init();
  fail(bus_fault);
  return chip.sent();
}

}  // namespace

TEST_CASE("after power-on the watchdog runs, and stands still under a debugger") {
  Chip chip(power_on());
  board::init();
  CHECK(chip.sent() == banner("power-on"));
  CHECK(chip.watchdog_runs());
  CHECK(chip.freezes() == (is_f7() ? 0x1000u : 0x40000u));
  CHECK((chip.reset_flags() & (is_f7() ? 1u << 24 : 1u << 16)) != 0);  // the flags are cleared
}

TEST_CASE("after a fault the LED blinks fast without an interrupt, and the watchdog resets the board") {
  Chip chip(power_on());
  board::init();
  chip.sent().clear();
  chip.led_changes = 0;
  const uint32_t before = chip.milliseconds();
  fail(bus_fault);
  CHECK(chip.sent() == "error: " + described);
  CHECK(chip.milliseconds() - before > 4900);
  CHECK(chip.milliseconds() - before < 5300);
  CHECK(chip.led_changes >= 48);
}

TEST_CASE("the next start tells of the fault, once") {
  start_and_fail(power_on());
  {
    Chip chip(by_watchdog());
    board::init();
    CHECK(chip.sent() == banner("the watchdog") + "last run: " + described);
    CHECK(chip.watchdog_runs());
  }
  Chip chip(by_watchdog());
  board::init();
  CHECK(chip.sent() == banner("the watchdog"));
}

TEST_CASE("faults end: after three restarts the board blinks, is not trained on, and waits for its button") {
  start_and_fail(power_on());
  CHECK(start_and_fail(by_watchdog()).find("last run: bus fault") != std::string::npos);
  CHECK(start_and_fail(by_watchdog()).find("last run: bus fault") != std::string::npos);
  {
    Chip chip(by_watchdog());
    chip.end_after(60'000);
    CHECK_THROWS_AS(board::init(), EndOfTest);
    CHECK(chip.sent() == banner("the watchdog") + "last run: " + described +
                             "error: the watchdog had to restart the board 3 times: press its reset button to try "
                             "again\r\nexit: 1\r\n");
    CHECK(!chip.watchdog_runs());
    CHECK(chip.led_changes >= 500);
  }
  Chip chip(by_button());
  board::init();
  CHECK(chip.sent() == banner("the reset pin"));
  CHECK(chip.watchdog_runs());
}

TEST_CASE("a fault before anything runs is kept, and resets the board as soon") {
  {
    Chip chip(power_on());
    fail(bus_fault);
    CHECK(chip.sent().empty());
    CHECK(chip.milliseconds() < 5300);
  }
  Chip chip(by_watchdog());
  board::init();
  CHECK(chip.sent() == banner("the watchdog") + "last run: " + described);
}

TEST_CASE("the LED is off after the start, and its level is the board's") {
  Chip chip(power_on());
  board::init();
  CHECK(chip.led() == (is_f7() ? 1u << 17 : 1u << 11));
  board::set_led(true);
  CHECK(chip.led() == (is_f7() ? 1u << 1 : 1u << 27));
}

TEST_CASE("opening a card ends where the clock's interrupt is never taken") {
  Chip chip(power_on());
  board::init();
  uint32_t blocks = 1;
  SUBCASE("no card") {
    chip.insert_card(false);
    CHECK(board::open_card(&blocks) == board::CardStatus::absent);
  }
  SUBCASE("one that says nothing") {
    chip.insert_card(true);
    CHECK(board::open_card(&blocks) == board::CardStatus::failed);
  }
  CHECK(blocks == 0);
  CHECK(chip.milliseconds() < 500);
}
