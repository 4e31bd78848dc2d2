// A board from reset on: after power-on, after a fault, after several.
#include <doctest/doctest.h>

#include "board/chip.hpp"
#include "common/board.hpp"
#include "drivers/cortex_m/fault.hpp"

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
