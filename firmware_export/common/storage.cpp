#include "common/storage.hpp"

#include "core/crc32.hpp"

namespace pmt::firmware {
namespace {

using board::CardStatus;

const char* text_of(CardStatus status) {
  switch (status) {
    case CardStatus::absent: return "no card answers";
    case CardStatus::timeout: return "the card does not answer any more";
    case CardStatus::checksum: return "the checksum of the transfer is wrong";
    case CardStatus::write_protected: return "the card is write-protected";
    case CardStatus::out_of_range: return "it lies beyond the end of the card";
    default: return "the card reports an error";
  }
}

// What the same request will answer the next time, too.
bool is_final(CardStatus status) { return status == CardStatus::write_protected || status == CardStatus::out_of_range; }

uint32_t checksum(const Block& block, uint32_t number, uint32_t generation) {
  const uint32_t place[] = {generation, number};
  const uint32_t crc = crc32(reinterpret_cast<const uint8_t*>(place), sizeof place);
  return crc32(block.payload, payload_bytes, crc);
}

}  // namespace

static_assert(board::block_bytes == sizeof(Block), "a block of the format is a block of the card");

void CardFault::describe(Line& line) const {
  if (verb != nullptr) line.text("block ").number(block).text(" cannot be ").text(verb).text(": ");
  line.text(why);
  line.text(" (").number(tries).text(tries == 1 ? " try)" : " tries)");
}

// True when there is nothing more to try; else the card is set up anew, which wakes one that hangs.
bool Storage::gives_up(const char* verb, uint32_t block, CardStatus status, int32_t tries) {
  board::feed_watchdog();
  if (tries < most_tries && !is_final(status)) {
    ++retries_;
    if (status != CardStatus::ok) board::open_card(&blocks_);
    return false;
  }
  const bool damaged = status == CardStatus::ok;
  fault_ = {damaged ? "it does not hold what it should" : text_of(status), verb, block, tries, damaged};
  holds_ = false;
  return true;
}

bool Storage::open() {
  for (int32_t tries = 1;; ++tries) {
    const CardStatus status = board::open_card(&blocks_);
    if (status == CardStatus::ok) return true;
    if (gives_up(nullptr, 0, status, tries)) return false;
  }
}

bool Storage::is_whole(const Block& block, uint32_t number, uint32_t generation) const {
  return checksum(block, number, generation) == block.crc32;
}

bool Storage::transfer_read(uint32_t block, uint32_t generation, Block* to) {
  for (int32_t tries = 1;; ++tries) {
    const CardStatus status = board::read_blocks(block, 1, to);
    if (status == CardStatus::ok && is_whole(*to, block, generation)) return true;
    if (gives_up("read", block, status, tries)) return false;
  }
}

const uint8_t* Storage::read(uint32_t block, uint32_t generation) {
  if (fault_.why != nullptr) return nullptr;
  if (holds_ && held_ == block && held_generation_ == generation) return block_.payload;
  holds_ = transfer_read(block, generation, &block_);
  held_ = block;
  held_generation_ = generation;
  return holds_ ? block_.payload : nullptr;
}

uint8_t* Storage::payload() {
  holds_ = false;
  return block_.payload;
}

// Reading back finds a card that took the block and did not keep it, before an older checkpoint is
// given up for this one.
bool Storage::write(uint32_t block, uint32_t generation) {
  if (fault_.why != nullptr) return false;
  holds_ = false;
  block_.crc32 = checksum(block_, block, generation);
  for (int32_t tries = 1;; ++tries) {
    CardStatus status = board::write_blocks(block, 1, &block_);
    if (status == CardStatus::ok) {
      Block back;
      status = board::read_blocks(block, 1, &back);
      if (status == CardStatus::ok && back.crc32 == block_.crc32 && is_whole(back, block, generation)) return true;
    }
    if (gives_up("written", block, status, tries)) return false;
  }
}

void Storage::forget_damage() {
  if (fault_.damaged) fault_ = {};
}

}  // namespace pmt::firmware
