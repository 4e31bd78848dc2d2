// Blocks of the card with their checksums. What fails is tried again, a bounded number of times; what
// fails for good is remembered, and nothing is tried after it.
#pragma once

#include "common/board.hpp"
#include "common/log.hpp"
#include "core/card/card_format.hpp"

namespace pmt::firmware {

constexpr int32_t most_tries = 4;
// Limit of one write. A card may be busy for half a second with each, and the watchdog waits 22 s at least (an F7's
// oscillator runs at 47 kHz at most).
constexpr uint32_t most_blocks_at_once = 16;

struct CardFault {
  const char* why = nullptr;   // nullptr: none
  const char* verb = nullptr;  // the failed operation; nullptr: the card does not open
  uint32_t block = 0;          // the first of them
  uint32_t blocks = 1;
  int32_t tries = 0;
  bool damaged = false;  // the card works, and the block does not hold what it should

  void describe(Line& line) const;
};

// Prints what failed; where the card has a fault, that is the cause of every later failure.
void print_error(const CardFault& fault, const char* what, const char* why, int32_t op = -1);

class Storage {
 public:
  bool open();
  uint32_t blocks() const { return blocks_; }

  // The payload of a block, until the next call; nullptr on a fault. A damaged one may pass for an erased one.
  const uint8_t* read(uint32_t block, bool or_erased = false);
  // Reads bytes of the joined payloads from block `first` on.
  bool read_bytes(uint32_t first, size_t offset, void* to, size_t count, bool or_erased = false);
  // Writes blocks whose payloads are filled, most_blocks_at_once at most. True once they read back as they
  // were written.
  bool write(uint32_t first, Block* blocks, uint32_t count);
  // Writes a block with other bytes in it, or with ones alone.
  bool change(uint32_t block, size_t offset, const void* from, size_t count);
  bool erase(uint32_t block);
  // Memory for one block that write() may take, where nothing else is called before it.
  Block* block() { return &block_; }

  const CardFault& fault() const { return fault_; }
  // For a caller that can do without, or tries again.
  void forget_fault() { fault_ = {}; }
  // Transfers that had to be tried again.
  int32_t retries() const { return retries_; }

 private:
  bool transfer_read(uint32_t block);
  bool gives_up(const CardFault& fault, board::CardStatus status);

  Block block_ = {};
  uint32_t held_ = 0;  // the block in block_
  bool holds_ = false;
  uint32_t blocks_ = 0;
  int32_t retries_ = 0;
  CardFault fault_;
};

}  // namespace pmt::firmware
