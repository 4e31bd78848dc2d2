// An SD card as its host sees it: commands, responses, blocks (Physical Layer Simplified Specification).
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <set>
#include <string>

namespace pmt::test {

using Block = std::array<uint8_t, 512>;

struct CardFaults {
  bool absent = false;
  int32_t power_up_polls = 2;           // responses of ACMD41 until the card is ready; < 0: never
  uint32_t silent_command = 1000;       // gets no response
  uint32_t damaged_command = 1000;      // gets a response with a wrong checksum
  std::set<uint32_t> damaged_blocks;    // their checksum is wrong, on either way
  std::set<uint32_t> missing_blocks;    // the card never sends them, or never says that it took them
  std::set<uint32_t> protected_blocks;  // the card refuses to write them
  bool always_busy = false;             // after a write
  uint32_t busy_polls = 0;              // after each block of a write, before the next is taken
  bool write_protected = false;         // in the CSD
};

class CardModel {
 public:
  // As numbered in the card status.
  enum class State { idle, ready, identification, standby, transfer, sending, receiving };

  CardModel(bool version2, bool high_capacity, uint32_t blocks)
      : version2_(version2), high_capacity_(high_capacity), blocks_(blocks) {}

  struct Response {
    enum class Kind { none, ok, damaged } kind = Kind::none;
    std::array<uint32_t, 4> words = {};  // a short response is the first one
    uint32_t index = 0;                  // what RESPCMD shows
  };
  Response command(uint32_t index, uint32_t argument);

  // For the controller's data path.
  bool is_sending() const { return state_ == State::sending; }
  bool is_receiving() const { return state_ == State::receiving; }
  bool is_wide() const { return wide_; }
  bool is_identified() const { return state_ > State::identification; }
  uint32_t position() const { return position_; }
  const Block& sent_block() { return content_[position_]; }
  void block_sent();
  void receive_block(const Block& block);

  Block& block(uint32_t index) { return content_[index]; }
  CardFaults faults;
  std::string log;  // the commands, in order

 private:
  Response application_command(uint32_t index, uint32_t argument);
  Response start_blocks(uint32_t index, uint32_t argument);
  Response status(uint32_t index, uint32_t errors = 0);
  Response short_response(uint32_t word, uint32_t index);
  std::array<uint32_t, 4> csd() const;

  bool version2_, high_capacity_;
  uint32_t blocks_;
  State state_ = State::idle;
  bool application_ = false;
  bool wide_ = false;
  bool single_ = false;
  bool written_ = false;
  int32_t polls_ = 0;
  uint32_t position_ = 0;
  uint32_t late_errors_ = 0;
  std::map<uint32_t, Block> content_;
};

}  // namespace pmt::test
