#include "common/storage.hpp"

#include "core/base/crc32.hpp"

namespace pmt::firmware {
namespace {

using board::CardStatus;

constexpr uint8_t erased = 0xFF;

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

// Whether the same request fails the next time, too.
bool is_final(CardStatus status) { return status == CardStatus::write_protected || status == CardStatus::out_of_range; }

uint32_t checksum(const Block& block, uint32_t number) {
  const uint32_t crc = crc32(reinterpret_cast<const uint8_t*>(&number), sizeof number);
  return crc32(block.payload, payload_bytes, crc);
}

CardStatus read_block(uint32_t number, Block* to) {
  board::feed_watchdog();
  return board::read_blocks(number, 1, to);
}

// Counts the blocks, from the first on, that the card holds as they were written.
uint32_t read_back(uint32_t first, const Block* blocks, uint32_t count, CardStatus* status) {
  Block back;
  for (uint32_t i = 0; i < count; ++i) {
    *status = read_block(first + i, &back);
    if (*status != CardStatus::ok || __builtin_memcmp(&back, &blocks[i], sizeof back) != 0) return i;
  }
  return count;
}

}  // namespace

static_assert(board::block_bytes == sizeof(Block), "a block of the format is a block of the card");

void CardFault::describe(Line& line) const {
  if (verb != nullptr) {
    line.text(blocks == 1 ? "block " : "blocks ").number(block);
    if (blocks > 1) line.text(" to ").number(int64_t{block} + blocks - 1);
    line.text(" cannot be ").text(verb).text(": ");
  }
  line.text(why);
  line.text(" (").number(tries).text(tries == 1 ? " try)" : " tries)");
}

void print_error(const CardFault& fault, const char* what, const char* why, int32_t op) {
  Line line;
  line.text("error: ");
  if (fault.why != nullptr) {
    fault.describe(line.text("card: "));
  } else {
    line.text(what).text(": ").text(why);
    if (op >= 0) line.text(" (op ").number(op).text(")");
  }
  line.print();
}

// True when there is nothing more to try; else the card is set up anew, which wakes one that hangs.
bool Storage::gives_up(const CardFault& fault, CardStatus status) {
  board::feed_watchdog();
  if (fault.tries < most_tries && !is_final(status)) {
    ++retries_;
    if (status != CardStatus::ok) board::open_card(&blocks_);
    return false;
  }
  fault_ = fault;
  fault_.damaged = status == CardStatus::ok;
  fault_.why = fault_.damaged ? "it does not hold what it should" : text_of(status);
  holds_ = false;
  return true;
}

bool Storage::open() {
  for (int32_t tries = 1;; ++tries) {
    const CardStatus status = board::open_card(&blocks_);
    if (status == CardStatus::ok) return true;
    if (gives_up({nullptr, nullptr, 0, 1, tries}, status)) return false;
  }
}

bool Storage::transfer_read(uint32_t block) {
  for (int32_t tries = 1;; ++tries) {
    const CardStatus status = read_block(block, &block_);
    if (status == CardStatus::ok && checksum(block_, block) == block_.crc32) return true;
    if (gives_up({nullptr, "read", block, 1, tries}, status)) return false;
  }
}

const uint8_t* Storage::read(uint32_t block, bool or_erased) {
  if (fault_.why != nullptr) return nullptr;
  if (holds_ && held_ == block) return block_.payload;
  holds_ = transfer_read(block);
  held_ = block;
  if (!holds_ && or_erased && fault_.damaged) {
    forget_fault();
    for (uint8_t& byte : block_.payload) byte = erased;
    holds_ = true;
  }
  return holds_ ? block_.payload : nullptr;
}

bool Storage::read_bytes(uint32_t first, size_t offset, void* to, size_t count, bool or_erased) {
  auto* bytes = static_cast<uint8_t*>(to);
  while (count > 0) {
    const uint8_t* payload = read(first + static_cast<uint32_t>(offset / payload_bytes), or_erased);
    if (payload == nullptr) return false;
    const size_t inside = offset % payload_bytes, rest = payload_bytes - inside;
    const size_t piece = count < rest ? count : rest;
    __builtin_memcpy(bytes, payload + inside, piece);
    bytes += piece;
    offset += piece;
    count -= piece;
  }
  return true;
}

// Reading back finds a card that took a block and did not keep it, before an older state is given up for this one.
bool Storage::write(uint32_t first, Block* blocks, uint32_t count) {
  if (fault_.why != nullptr) return false;
  holds_ = false;
  for (uint32_t i = 0; i < count; ++i) blocks[i].crc32 = checksum(blocks[i], first + i);
  for (int32_t tries = 1;; ++tries) {
    board::feed_watchdog();
    CardStatus status = board::write_blocks(first, count, blocks);
    CardFault fault = {nullptr, "written", first, count, tries};
    if (status == CardStatus::ok) {
      const uint32_t kept = read_back(first, blocks, count, &status);
      if (kept == count) return true;
      fault.block = first + kept;
      fault.blocks = 1;
    }
    if (gives_up(fault, status)) return false;
  }
}

bool Storage::change(uint32_t block, size_t offset, const void* from, size_t count) {
  if (read(block) == nullptr) return false;  // what is damaged would be valid afterwards
  __builtin_memcpy(block_.payload + offset, from, count);
  return write(block, &block_, 1);
}

bool Storage::erase(uint32_t block) {
  for (uint8_t& byte : block_.payload) byte = erased;
  return write(block, &block_, 1);
}

}  // namespace pmt::firmware
