// The functions of common/board.hpp for every STM32 board.
#include "drivers/stm32/board.hpp"

#include "common/log.hpp"
#include "drivers/cortex_m/cache.hpp"
#include "drivers/cortex_m/marks.hpp"
#include "drivers/cortex_m/tick.hpp"
#include "drivers/stm32/usart.hpp"
#include "drivers/stm32/watchdog.hpp"
#include "model/config.hpp"

namespace pmt::board {
namespace {

using stm32::description;

constexpr uint32_t baud = 115200;
constexpr uint32_t settle_milliseconds = 10;  // of the card's switch

// Not zeroed at the start: a computation that reads what it did not write shows in the comparison.
alignas(16) __attribute__((section(".arena"))) uint8_t memory[exported::arena_bytes];
stm32::Sdmmc card(description.sdmmc);

void connect_pins() {
  stm32::make_output(description.led);
  stm32::make_alternate(description.transmit, description.transmit_function, stm32::Pull::up);
  stm32::make_input(description.card_detect, stm32::Pull::up);
  for (const stm32::Pin& pin : description.sdmmc_pins) {
    stm32::make_alternate(pin, description.sdmmc_function, stm32::Pull::up);
  }
}

}  // namespace

void init() {
  cortex_m::enable_caches();
  const bool clocks = description.start_clocks();
  connect_pins();
  cortex_m::start_tick(clocks ? description.core_hz : description.reset_hz);
  stm32::open_usart(description.usart, clocks ? description.usart_hz : description.reset_hz, baud);
  if (!clocks) {
    print("error: the crystal or the PLL did not start\n");
    exit(1);
  }
  firmware::Line line;
  line.text(description.name).text(": ").number(description.core_hz / 1000000).text(" MHz").print();
  stm32::start_watchdog(description.watchdog);
}

void print(const char* text) { stm32::send(description.usart, text); }

// A microcontroller has nowhere to go: the lamp blinks fast after a failure and slowly otherwise.
void exit(int status) {
  firmware::Line().text("exit: ").number(status).print();
  stm32::flush_usart(description.usart);
  const uint32_t half_period = status == 0 ? 1000 : 100;
  for (;;) {
    feed_watchdog();
    set_led(milliseconds() / half_period % 2 == 0);
  }
}

Memory arena() { return cortex_m::arena(memory, sizeof memory); }

StackUse stack_use() { return cortex_m::stack_use(); }

uint32_t milliseconds() { return cortex_m::milliseconds(); }

void feed_watchdog() { stm32::feed_watchdog(description.watchdog); }

void set_led(bool on) { stm32::set(description.led, on); }

CardStatus open_card(uint32_t* blocks) {
  *blocks = 0;
  const uint32_t start = milliseconds();
  while (milliseconds() - start < settle_milliseconds) {
  }
  if (stm32::is_high(description.card_detect)) return CardStatus::absent;
  return card.open(blocks);
}

CardStatus read_blocks(uint32_t first, uint32_t count, void* bytes) { return card.read(first, count, bytes); }

CardStatus write_blocks(uint32_t first, uint32_t count, const void* bytes) { return card.write(first, count, bytes); }

}  // namespace pmt::board
