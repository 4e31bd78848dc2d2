// Pins, serial line and watchdog: the registers as the manuals want them.
#include <doctest/doctest.h>

#include <string>

#include "drivers/stm32/peripherals.hpp"
#include "drivers/stm32f7/chip.hpp"
#include "drivers/stm32h7/chip.hpp"
#include "register_model.hpp"

using namespace pmt::stm32;
using pmt::test::RegisterModel;
using pmt::test::SerialLine;
using pmt::test::SimulatedBus;

namespace {

constexpr uint32_t port = 0x40020800;

}  // namespace

TEST_CASE("a pin is connected to its peripheral; the others stay as they are") {
  SimulatedBus bus;
  RegisterModel pins(port);
  bus.attach(port, 0x400, &pins);
  pins.at(port) = 0xAAAAAAAA;
  make_alternate({port, 12}, 12, Pull::up);
  CHECK(pins.at(port + 0x24) == 12u << 16);
  CHECK(pins.at(port + 0x08) == 3u << 24);
  CHECK(pins.at(port + 0x0C) == 1u << 24);
  make_input({port, 13}, Pull::up);
  CHECK(pins.at(port) == 0xA2AAAAAA);
  make_output({port, 1});
  CHECK(pins.at(port) == 0xA2AAAAA6);
  CHECK(pins.at(port + 0x18) == 1u << 17);
  set({port, 1}, true);
  CHECK(pins.at(port + 0x18) == 1u << 1);
  pins.at(port + 0x10) = 1u << 13;
  CHECK(is_on({port, 13}));
  CHECK_FALSE(is_on({port, 12}));
}

TEST_CASE("what hangs between the supply and a pin is on when the pin is low") {
  SimulatedBus bus;
  RegisterModel pins(port);
  bus.attach(port, 0x400, &pins);
  const Pin led = {port, 11, Active::low};
  make_output(led);
  CHECK(pins.at(port + 0x18) == 1u << 11);  // off
  set(led, true);
  CHECK(pins.at(port + 0x18) == 1u << 27);
  CHECK(is_on(led));
  pins.at(port + 0x10) = 1u << 11;
  CHECK_FALSE(is_on(led));
}

TEST_CASE("the serial line runs at 115200 baud and ends lines as terminals do") {
  SimulatedBus bus;
  SerialLine line;
  bus.attach(0x40011000, 0x400, &line);
  open_usart(0x40011000, 108'000'000, 115200);
  CHECK(line.at(0x0C) == 938);  // 108 MHz / 938 = 115139: 0.05 % off
  CHECK(line.at(0x00) == 0x9);
  send(0x40011000, "step 1\n");
  flush_usart(0x40011000);
  CHECK(line.sent == "step 1\r\n");
}

TEST_CASE("a serial line receives once it is told to, and goes on after bytes that nobody took") {
  SimulatedBus bus;
  SerialLine line;
  bus.attach(0x40011000, 0x400, &line);
  open_usart(0x40011000, 108'000'000, 115200);
  start_receiving(0x40011000);
  CHECK(line.at(0x00) == 0xD);
  uint8_t byte = 0;
  CHECK_FALSE(receive(0x40011000, &byte));
  line.at(0x1C) = 0xE0;
  line.at(0x24) = 0xA5;
  CHECK(receive(0x40011000, &byte));
  CHECK(byte == 0xA5);
  CHECK(line.at(0x20) == 0);
  line.at(0x1C) = 0xC8;
  CHECK_FALSE(receive(0x40011000, &byte));
  CHECK(line.at(0x20) == 0x8);  // the overrun is cleared
}

TEST_CASE("a serial line that is not open, or is stuck, costs no time") {
  SimulatedBus bus;
  SerialLine line;
  bus.attach(0x40011000, 0x400, &line);
  send(0x40011000, "a fault before the line was opened\n");
  flush_usart(0x40011000);
  CHECK(line.sent.empty());
  CHECK(bus.milliseconds() == 0);
  open_usart(0x40011000, 108'000'000, 115200);
  line.at(0x1C) = 0;
  send(0x40011000, "what nobody takes\n");
  flush_usart(0x40011000);
  CHECK(line.sent.empty());
  CHECK(bus.milliseconds() <= 401);
}

TEST_CASE("why the chip started is read once") {
  SimulatedBus bus;
  RegisterModel f7(0x40023800), h7(0x58024400);
  bus.attach(0x40023800, 0x400, &f7);
  bus.attach(0x58024400, 0x400, &h7);
  const struct {
    uint32_t f7, h7;
    ResetCause cause;
    const char* name;
  } starts[] = {{0x0E000000, 0x00E80000, ResetCause::power, "power-on"},
                {0x24000000, 0x04400000, ResetCause::watchdog, "the watchdog"},
                {0x14000000, 0x01400000, ResetCause::software, "software"},
                {0x04000000, 0x00400000, ResetCause::pin, "the reset pin"},
                {0x84000000 & ~0x04000000u, 0x40000000, ResetCause::other, "something else"}};
  for (const auto& start : starts) {
    f7.at(0x40023874) = start.f7;
    h7.at(0x58024530) = start.h7;
    CHECK(take_reset_cause(pmt::stm32f7::reset_flags) == start.cause);
    CHECK(take_reset_cause(pmt::stm32h7::reset_flags) == start.cause);
    CHECK(std::string(name_of(start.cause)) == start.name);
    CHECK(f7.at(0x40023874) == (start.f7 | 1u << 24));
    CHECK(h7.at(0x58024530) == (start.h7 | 1u << 16));
  }
}

TEST_CASE("the watchdog is started with the longest time, and fed; it stands still under a debugger") {
  for (const Watchdog& one : {pmt::stm32f7::watchdog, pmt::stm32h7::watchdog}) {
    SimulatedBus bus;
    RegisterModel watchdog(0), debug(0);
    bus.attach(one.base, 0x400, &watchdog);
    bus.attach(one.freeze, 4, &debug);
    start_watchdog(one);
    CHECK(debug.at(0) == (one.base == 0x40003000 ? 0x1000 : 0x40000));
    CHECK(watchdog.at(4) == 6);
    CHECK(watchdog.at(8) == 3999);  // * 256 / 32 kHz = 32 s
    CHECK(watchdog.written == std::vector<uint32_t>{0, 0, 4, 8, 0});
    watchdog.at(0) = 0;
    feed_watchdog(one);
    CHECK(watchdog.at(0) == 0xAAAA);
    start_watchdog(one, 5);
    CHECK(watchdog.at(8) == 624);
  }
}
