// Pins, serial line and watchdog: the registers as the manuals want them.
#include <doctest/doctest.h>

#include <string>

#include "drivers/stm32/gpio.hpp"
#include "drivers/stm32/usart.hpp"
#include "drivers/stm32/watchdog.hpp"
#include "register_model.hpp"

using namespace pmt::stm32;
using pmt::test::RegisterModel;
using pmt::test::SimulatedBus;

namespace {

constexpr uint32_t port = 0x40020800;

class Line : public RegisterModel {
 public:
  Line() : RegisterModel(0) { at(0x1C) = 0xC0; }  // TC and TXE
  void write(uint32_t offset, uint32_t value) override {
    if (offset == 0x28) sent += static_cast<char>(value);
    RegisterModel::write(offset, value);
  }
  std::string sent;
};

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
  CHECK(is_high({port, 13}));
  CHECK_FALSE(is_high({port, 12}));
}

TEST_CASE("the serial line runs at 115200 baud and ends lines as terminals do") {
  SimulatedBus bus;
  Line line;
  bus.attach(0x40011000, 0x400, &line);
  open_usart(0x40011000, 108'000'000, 115200);
  CHECK(line.at(0x0C) == 938);  // 108 MHz / 938 = 115139: 0.05 % off
  CHECK(line.at(0x00) == 0x9);
  send(0x40011000, "step 1\n");
  flush_usart(0x40011000);
  CHECK(line.sent == "step 1\r\n");
}

TEST_CASE("the watchdog is started with the longest time, and fed") {
  SimulatedBus bus;
  RegisterModel watchdog(0);
  bus.attach(0x40003000, 0x400, &watchdog);
  start_watchdog(0x40003000);
  CHECK(watchdog.at(4) == 6);
  CHECK(watchdog.at(8) == 0xFFF);
  CHECK(watchdog.written == std::vector<uint32_t>{0, 0, 4, 8, 0});
  watchdog.at(0) = 0;
  feed_watchdog(0x40003000);
  CHECK(watchdog.at(0) == 0xAAAA);
}
