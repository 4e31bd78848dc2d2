// A program of two exports, each trained by a source that includes its own config.hpp: "first CARD", "second CARD";
// "mixed CARD" opens the first image as if it were the second's.
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "common/session.hpp"

int train_first(const pmt::board::Memory& arena);
int train_second(const pmt::board::Memory& arena);
pmt::firmware::ModelImage first_model();
pmt::firmware::ModelImage second_model();

namespace {

alignas(16) uint8_t memory[1 << 20];
std::FILE* card = nullptr;
uint32_t card_blocks = 0;

bool seek(uint32_t block) {
  return std::fseek(card, static_cast<long>(block) * long{pmt::board::block_bytes}, SEEK_SET) == 0;
}

}  // namespace

namespace pmt::board {

void print(const char* text) { std::fputs(text, stdout); }
StackUse stack_use() { return {0, 0}; }
uint32_t milliseconds() { return 0; }
void feed_watchdog() {}
void set_led(bool) {}

CardStatus open_card(uint32_t* blocks) {
  std::fseek(card, 0, SEEK_END);
  *blocks = card_blocks = static_cast<uint32_t>(std::ftell(card) / long{block_bytes});
  return CardStatus::ok;
}

CardStatus read_blocks(uint32_t first, uint32_t count, void* bytes) {
  if (!is_on_card(first, count, card_blocks)) return CardStatus::out_of_range;
  return seek(first) && std::fread(bytes, block_bytes, count, card) == count ? CardStatus::ok : CardStatus::failed;
}

CardStatus write_blocks(uint32_t first, uint32_t count, const void* bytes) {
  if (!is_on_card(first, count, card_blocks)) return CardStatus::out_of_range;
  return seek(first) && std::fwrite(bytes, block_bytes, count, card) == count ? CardStatus::ok : CardStatus::failed;
}

}  // namespace pmt::board

int main(int, char** words) {
  const pmt::board::Memory arena = {memory, sizeof memory};
  card = std::fopen(words[2], "r+b");
  if (card == nullptr) return 2;
  if (std::strcmp(words[1], "first") == 0) return train_first(arena);
  if (std::strcmp(words[1], "second") == 0) return train_second(arena);
  static pmt::firmware::Session session;
  const pmt::firmware::ModelImage first = first_model();
  return session.open({first.bytes, first.count, second_model().crc32}, arena) ? 0 : 1;
}
