// QEMU's mps2-an500 (Cortex-M7): console by semihosting, the file card.img as the card, the arena in
// the board's RAM.
#include "common/board.hpp"

#include "common/semihosting.hpp"
#include "drivers/cortex_m/processor.hpp"
#include "model/config.hpp"

namespace pmt::board {
namespace {

// Not zeroed at the start: a computation that reads what it did not write shows in the comparison.
alignas(16) __attribute__((section(".arena"))) uint8_t memory[exported::arena_bytes];
// The board's FPGAIO: user LEDs, and a counter of hundredths of a second.
constexpr uintptr_t leds_register = 0x40028000;
constexpr uintptr_t hundredths_register = 0x40028014;

uint32_t start = 0;
int32_t card = -1;
uint32_t card_blocks = 0;

}  // namespace

void init() { start = *reinterpret_cast<volatile uint32_t*>(hundredths_register); }

void print(const char* text) { semihosting::print(text); }

void exit(int status) { semihosting::exit(status); }

Memory arena() { return cortex_m::arena(memory, sizeof memory); }

StackUse stack_use() { return cortex_m::stack_use(); }

uint32_t milliseconds() { return 10 * (*reinterpret_cast<volatile uint32_t*>(hundredths_register) - start); }

void feed_watchdog() {}

void set_led(bool on) {
  auto* leds = reinterpret_cast<volatile uint32_t*>(leds_register);
  *leds = on ? *leds | 1u : *leds & ~1u;
}

CardStatus open_card(uint32_t* blocks) {
  if (card < 0) card = semihosting::open("card.img", semihosting::Mode::update);
  const int32_t bytes = card < 0 ? -1 : semihosting::length(card);
  if (bytes < 0) return CardStatus::absent;
  card_blocks = static_cast<uint32_t>(bytes) / block_bytes;
  *blocks = card_blocks;
  return CardStatus::ok;
}

CardStatus read_blocks(uint32_t first, uint32_t count, void* bytes) {
  if (!is_on_card(first, count, card_blocks)) return CardStatus::out_of_range;
  const bool done = semihosting::seek(card, first * block_bytes) && semihosting::read(card, bytes, count * block_bytes);
  return done ? CardStatus::ok : CardStatus::failed;
}

CardStatus write_blocks(uint32_t first, uint32_t count, const void* bytes) {
  if (!is_on_card(first, count, card_blocks)) return CardStatus::out_of_range;
  const bool done =
      semihosting::seek(card, first * block_bytes) && semihosting::write(card, bytes, count * block_bytes);
  return done ? CardStatus::ok : CardStatus::failed;
}

}  // namespace pmt::board
