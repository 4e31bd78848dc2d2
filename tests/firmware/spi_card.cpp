// Firmware for QEMU's lm3s6965evb (Cortex-M3): the card at its SSI0, in SPI mode. Reads block 3, writes it
// back inverted to block 5, and reads that.
#include "drivers/sd/spi_card.hpp"

#include "common/log.hpp"
#include "common/semihosting.hpp"

extern "C" uint32_t stack_top[];

namespace {

volatile uint32_t& at(uint32_t address) { return *reinterpret_cast<volatile uint32_t*>(address); }

// Stellaris LM3S6965 data sheet: SSI0, GPIO D, GPIO A. Bit 0 of port D selects the card.
constexpr uint32_t RCGC1 = 0x400FE104, RCGC2 = 0x400FE108;
constexpr uint32_t SSICR0 = 0x40008000, SSICR1 = 0x40008004, SSIDR = 0x40008008, SSISR = 0x4000800C;
constexpr uint32_t SSICPSR = 0x40008010;
constexpr uint32_t GPIOD_BIT0 = 0x40007004, GPIOD_DIR = 0x40007400, GPIOD_DEN = 0x4000751C;
constexpr uint32_t GPIOA_AFSEL = 0x40004420, GPIOA_DEN = 0x4000451C;
constexpr uint32_t receive_not_empty = 1u << 2, transmit_not_full = 1u << 1;

uint32_t ticks = 0;

uint8_t exchange(uint8_t byte) {
  while ((at(SSISR) & transmit_not_full) == 0) {
  }
  at(SSIDR) = byte;
  while ((at(SSISR) & receive_not_empty) == 0) {
  }
  return static_cast<uint8_t>(at(SSIDR));
}

void select(bool on) { at(GPIOD_BIT0) = on ? 0 : 1; }
void set_fast(bool fast) { at(SSICPSR) = fast ? 2 : 64; }

void connect() {
  at(RCGC1) = 1u << 4;
  at(RCGC2) = 1u << 0 | 1u << 3;
  at(GPIOA_AFSEL) = 0x3C;
  at(GPIOA_DEN) = 0x3C;
  at(GPIOD_DIR) = 1;
  at(GPIOD_DEN) = 1;
  select(false);
  at(SSICR1) = 0;
  at(SSICR0) = 7;  // 8 bits
  at(SSICR1) = 2;  // on
}

uint32_t block[128];

}  // namespace

namespace pmt::board {

void print(const char* text) { semihosting::print(text); }
uint32_t milliseconds() { return ++ticks / 100; }

}  // namespace pmt::board

int main() {
  using namespace pmt;
  connect();
  sd::SpiCard card({exchange, select, set_fast});
  uint32_t blocks = 0;
  auto report = [](const char* what, board::CardStatus status) {
    firmware::Line().text(what).text(": ").number(static_cast<int32_t>(status)).print();
  };
  report("open", card.open(&blocks));
  firmware::Line().text("blocks: ").number(blocks).print();
  report("read", card.read(3, 1, block));
  firmware::Line().text("word: ").hex(block[7]).print();
  for (uint32_t& word : block) word = ~word;
  report("write", card.write(5, 1, block));
  for (uint32_t& word : block) word = 0;
  report("read", card.read(5, 1, block));
  firmware::Line().text("word: ").hex(block[7]).print();
  report("outside", card.read(blocks, 1, block));
  semihosting::exit(0);
}

extern "C" {

extern uint32_t bss_begin[], bss_end[];

void start() {
  for (uint32_t* to = bss_begin; to < bss_end;) *to++ = 0;
  main();
}

using Handler = void (*)();
__attribute__((section(".vectors"), used))
const Handler vectors[4] = {reinterpret_cast<Handler>(stack_top), start, start, start};

}  // extern "C"
