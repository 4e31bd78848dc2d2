// A port for the machine that compiles it: the file card.img stands for the card.
#include <chrono>
#include <cstdio>
#include <cstdlib>

#include "common/board.hpp"
#include "model/config.hpp"

namespace pmt::board {
namespace {

// Pointers of 64 bits make the trainer's tables larger.
constexpr size_t for_pointers = sizeof(void*) > 4 ? exported::arena_bytes / 4 + 65536 : 0;
alignas(16) uint8_t memory[exported::arena_bytes + for_pointers];

using Clock = std::chrono::steady_clock;
Clock::time_point start;
std::FILE* card = nullptr;
uint32_t card_blocks = 0;

bool seek(uint32_t block) { return std::fseek(card, static_cast<long>(block) * long{block_bytes}, SEEK_SET) == 0; }

}  // namespace

void init() {
  start = Clock::now();
  firmware::paint(memory, sizeof memory);
}

void print(const char* text) { std::fputs(text, stdout); }

void exit(int status) { std::exit(status); }

Memory arena() { return {memory, sizeof memory, sizeof memory}; }

StackUse stack_use() { return {0, 0}; }

uint32_t milliseconds() {
  return static_cast<uint32_t>(std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - start).count());
}

void feed_watchdog() {}

void set_led(bool) {}

CardStatus open_card(uint32_t* blocks) {
  if (card == nullptr) card = std::fopen("card.img", "r+b");
  if (card == nullptr || std::fseek(card, 0, SEEK_END) != 0) return CardStatus::absent;
  card_blocks = static_cast<uint32_t>(std::ftell(card) / long{block_bytes});
  *blocks = card_blocks;
  return CardStatus::ok;
}

CardStatus read_blocks(uint32_t first, uint32_t count, void* bytes) {
  if (!is_on_card(first, count, card_blocks)) return CardStatus::out_of_range;
  return seek(first) && std::fread(bytes, block_bytes, count, card) == count ? CardStatus::ok : CardStatus::failed;
}

CardStatus write_blocks(uint32_t first, uint32_t count, const void* bytes) {
  if (!is_on_card(first, count, card_blocks)) return CardStatus::out_of_range;
  const bool done = seek(first) && std::fwrite(bytes, block_bytes, count, card) == count && std::fflush(card) == 0;
  return done ? CardStatus::ok : CardStatus::failed;
}

}  // namespace pmt::board
