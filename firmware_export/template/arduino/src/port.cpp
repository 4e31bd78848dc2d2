// The functions of common/board.hpp on Arduino: Serial, and the blocks of the SD library's card.
#include <Arduino.h>
#include <SD.h>

#include "common/board.hpp"
#include "model/config.hpp"

#ifndef PMT_CHIP_SELECT
#define PMT_CHIP_SELECT SS
#endif

namespace pmt::board {
namespace {

alignas(16) uint8_t memory[exported::arena_bytes];
Sd2Card card;
uint32_t card_blocks = 0;

}  // namespace

void init() {
  firmware::paint(memory, sizeof memory);
  Serial.begin(115200);
  pinMode(LED_BUILTIN, OUTPUT);
}

void print(const char* text) { Serial.print(text); }

void exit(int status) {
  Serial.print("exit: ");
  Serial.println(status);
  for (;;) delay(1000);
}

Memory arena() { return {memory, sizeof memory, sizeof memory}; }

StackUse stack_use() { return {0, 0}; }

uint32_t milliseconds() { return millis(); }

void feed_watchdog() { yield(); }

void set_led(bool on) { digitalWrite(LED_BUILTIN, on ? HIGH : LOW); }

CardStatus open_card(uint32_t* blocks) {
  *blocks = 0;
  if (!card.init(SPI_HALF_SPEED, PMT_CHIP_SELECT)) return CardStatus::absent;
  card_blocks = card.cardSize();
  *blocks = card_blocks;
  return CardStatus::ok;
}

CardStatus read_blocks(uint32_t first, uint32_t count, void* bytes) {
  if (!is_on_card(first, count, card_blocks)) return CardStatus::out_of_range;
  auto* to = static_cast<uint8_t*>(bytes);
  for (uint32_t i = 0; i < count; ++i, to += block_bytes) {
    if (!card.readBlock(first + i, to)) return CardStatus::failed;
  }
  return CardStatus::ok;
}

CardStatus write_blocks(uint32_t first, uint32_t count, const void* bytes) {
  if (!is_on_card(first, count, card_blocks)) return CardStatus::out_of_range;
  const auto* from = static_cast<const uint8_t*>(bytes);
  for (uint32_t i = 0; i < count; ++i, from += block_bytes) {
    if (!card.writeBlock(first + i, from)) return CardStatus::failed;
  }
  return CardStatus::ok;
}

}  // namespace pmt::board
