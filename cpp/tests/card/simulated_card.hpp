// A board whose card loses its power, tears blocks and fails on demand. There is one, as on a board.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/board.hpp"
#include "tests/random_source.hpp"

namespace pmt::tests {

// Thrown out of the firmware where its power goes.
struct PowerCut {};

// The content of a block after a power cut in its write.
enum class Torn { old_block, new_block, first_part, noise };
inline const std::vector<Torn> all_torn = {Torn::old_block, Torn::new_block, Torn::first_part, Torn::noise};

// A fault of a card in one transfer or, once it is stuck, in all.
enum class TransferFault {
  none,
  bad_transfer,  // reports a wrong CRC
  no_response,   // reports a timeout
  lost_write,    // says it is written, and nothing is
  short_write,   // says it is written, and only the first part of the last block is
  flipped_read,  // delivers a wrong byte and reports nothing
};

class SimulatedCard {
 public:
  static SimulatedCard& instance();

  // A new board with a new card of blocks of zeros.
  void reset(uint32_t blocks);
  // Power is back: the card is as it was left, and works.
  void power_on();

  std::vector<uint8_t> bytes;
  std::string log;
  bool led = false;
  bool present = true;
  bool write_protected = false;
  int64_t reads = 0;
  int64_t writes = 0;           // blocks
  int64_t write_transfers = 0;  // of one block or several
  uint32_t block_milliseconds = 0;
  // Since the watchdog was fed; and the longest that it has waited.
  uint32_t unfed_milliseconds = 0;
  uint32_t longest_unfed = 0;

  // The power goes in the write that begins after `after` more whole ones.
  void cut_power(int64_t after, Torn torn, RandomSource* random);
  // The next transfers misbehave, `count` of them; count < 0: all, the card is stuck.
  void inject(TransferFault fault, int64_t count);

  board::CardStatus open(uint32_t* blocks) const;
  board::CardStatus read(uint32_t first, uint32_t count, uint8_t* to);
  board::CardStatus write(uint32_t first, uint32_t count, const uint8_t* from);

 private:
  void take_time(uint32_t blocks);
  TransferFault next_fault(bool writing);
  void tear(uint8_t* block, const uint8_t* from);
  bool is_inside(uint32_t first, uint32_t count) const;

  int64_t cut_after_ = -1;
  Torn torn_ = Torn::old_block;
  RandomSource* random_ = nullptr;
  TransferFault fault_ = TransferFault::none;
  int64_t faults_left_ = 0;
};

}  // namespace pmt::tests
