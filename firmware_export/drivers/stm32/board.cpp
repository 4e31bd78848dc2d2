// The functions of common/board.hpp for every STM32 board.
#include "drivers/stm32/board.hpp"

#include "common/log.hpp"
#include "drivers/cortex_m/fault.hpp"
#include "drivers/cortex_m/processor.hpp"
#include "drivers/stm32/peripherals.hpp"
#include "model/config.hpp"

namespace pmt::board {
namespace {

using stm32::description;

constexpr uint32_t baud = 115200;
constexpr uint32_t settle_milliseconds = 10;  // of the card's switch
constexpr uint32_t most_restarts = 3;         // by the watchdog, since power-on or the reset button
constexpr uint32_t seconds_after_fault = 5;
constexpr uint32_t fast = 100, slow = 1000;  // half a period of the LED, in milliseconds

// Not zeroed at the start: a computation that reads what it did not write shows in the comparison.
alignas(16) __attribute__((section(".arena"))) uint8_t memory[exported::arena_bytes];
stm32::Sdmmc card(description.sdmmc);

void connect_pins() {
  stm32::make_output(description.led);
  stm32::make_alternate(description.transmit, description.usart_function, stm32::Pull::up);
  stm32::make_input(description.card_detect, stm32::Pull::up);
  for (const stm32::Pin& pin : description.sdmmc_pins) {
    stm32::make_alternate(pin, description.sdmmc_function, stm32::Pull::up);
  }
}

void light(uint32_t half_period) { set_led(milliseconds() / half_period % 2 == 0); }

// Prints why the run before stopped; a board that the watchdog restarts again and again stays here.
void report_start(stm32::ResetCause cause, const cortex_m::Kept& before) {
  firmware::Line line;
  line.text(description.name).text(": ").number(description.core_hz / 1000000).text(" MHz, started by ");
  line.text(stm32::name_of(cause)).print();
  if (before.fault.exception != 0) {
    cortex_m::describe(before.fault, line.text("last run: "));
    line.print();
  }
  if (before.restarts < most_restarts) return;
  line.text("error: the watchdog had to restart the board ").number(before.restarts);
  line.text(" times: press its reset button to try again").print();
  exit(1);
}

}  // namespace

void init() {
  const stm32::ResetCause cause = stm32::take_reset_cause(description.reset);
  const cortex_m::Kept before = cortex_m::take_kept(cause == stm32::ResetCause::watchdog);
  cortex_m::enable_caches();
  const bool clocks = description.start_clocks();
  connect_pins();
  cortex_m::start_tick(clocks ? description.core_hz : description.reset_hz);
  stm32::open_usart(description.usart, clocks ? description.usart_hz : description.reset_hz, baud);
  if (!clocks) {
    print("error: the crystal or the PLL did not start\n");
    exit(1);
  }
  report_start(cause, before);
  stm32::start_watchdog(description.watchdog);
}

void print(const char* text) { stm32::send(description.usart, text); }

// A microcontroller has nowhere to go: the LED blinks fast after a failure and slowly otherwise.
void exit(int status) {
  firmware::Line().text("exit: ").number(status).print();
  stm32::flush_usart(description.usart);
  for (;;) {
    feed_watchdog();
    light(status == 0 ? slow : fast);
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
  if (!stm32::is_on(description.card_detect)) return CardStatus::absent;
  return card.open(blocks);
}

CardStatus read_blocks(uint32_t first, uint32_t count, void* bytes) { return card.read(first, count, bytes); }

CardStatus write_blocks(uint32_t first, uint32_t count, const void* bytes) { return card.write(first, count, bytes); }

}  // namespace pmt::board

// The watchdog may not run yet. It is not fed any more: it resets the board.
void pmt::cortex_m::after_fault(firmware::Line& report) {
  stm32::start_watchdog(board::description.watchdog, board::seconds_after_fault);
  report.print();
  for (;;) board::light(board::fast);
}
