#include "tests/card/simulated_card.hpp"

#include <algorithm>

namespace pmt::tests {

using board::block_bytes;
using board::CardStatus;

SimulatedCard& SimulatedCard::instance() {
  static SimulatedCard card;
  return card;
}

void SimulatedCard::reset(uint32_t blocks) {
  *this = SimulatedCard();
  bytes.assign(size_t{blocks} * block_bytes, 0);
}

void SimulatedCard::power_on() {
  cut_after_ = -1;
  fault_ = TransferFault::none;
  present = true;
  write_protected = false;
  led = false;
  log.clear();
}

void SimulatedCard::cut_power(int64_t after, Torn torn, RandomSource* random) {
  cut_after_ = after;
  torn_ = torn;
  random_ = random;
}

void SimulatedCard::inject(TransferFault fault, int64_t count) {
  fault_ = fault;
  faults_left_ = count;
}

void SimulatedCard::take_time(uint32_t blocks) {
  unfed_milliseconds += blocks * block_milliseconds;
  longest_unfed = std::max(longest_unfed, unfed_milliseconds);
}

TransferFault SimulatedCard::next_fault(bool writing) {
  if (fault_ == TransferFault::none || faults_left_ == 0) return TransferFault::none;
  const bool of_writes = fault_ == TransferFault::lost_write || fault_ == TransferFault::short_write;
  if (writing ? fault_ == TransferFault::flipped_read : of_writes) return TransferFault::none;
  if (faults_left_ > 0) --faults_left_;
  return fault_;
}

bool SimulatedCard::is_inside(uint32_t first, uint32_t count) const {
  return (uint64_t{first} + count) * block_bytes <= bytes.size();
}

CardStatus SimulatedCard::open(uint32_t* blocks) const {
  *blocks = static_cast<uint32_t>(bytes.size() / block_bytes);
  return present ? CardStatus::ok : CardStatus::absent;
}

CardStatus SimulatedCard::read(uint32_t first, uint32_t count, uint8_t* to) {
  ++reads;
  take_time(count);
  if (!present) return CardStatus::absent;
  if (!is_inside(first, count)) return CardStatus::out_of_range;
  const TransferFault fault = next_fault(false);
  if (fault == TransferFault::bad_transfer) return CardStatus::checksum;
  if (fault == TransferFault::no_response) return CardStatus::timeout;
  std::copy_n(bytes.data() + size_t{first} * block_bytes, size_t{count} * block_bytes, to);
  if (fault == TransferFault::flipped_read) to[100] ^= 0x10;
  return CardStatus::ok;
}

void SimulatedCard::tear(uint8_t* block, const uint8_t* from) {
  switch (torn_) {
    case Torn::old_block: return;
    case Torn::new_block: std::copy_n(from, block_bytes, block); return;
    case Torn::first_part: std::copy_n(from, random_->integer(1, block_bytes - 1), block); return;
    case Torn::noise: std::generate_n(block, block_bytes, [this] { return static_cast<uint8_t>(random_->bits()); });
  }
}

CardStatus SimulatedCard::write(uint32_t first, uint32_t count, const uint8_t* from) {
  if (!present) return CardStatus::absent;
  if (!is_inside(first, count)) return CardStatus::out_of_range;
  if (write_protected) return CardStatus::write_protected;
  uint8_t* to = bytes.data() + size_t{first} * block_bytes;
  take_time(count);
  ++write_transfers;
  const TransferFault fault = next_fault(true);
  if (fault == TransferFault::no_response) return CardStatus::timeout;
  for (uint32_t i = 0; i < count; ++i, to += block_bytes, from += block_bytes) {
    if (cut_after_ == 0) {
      tear(to, from);
      throw PowerCut();
    }
    if (cut_after_ > 0) --cut_after_;
    ++writes;
    const bool last = i + 1 == count;
    if (last && fault == TransferFault::bad_transfer) return CardStatus::checksum;
    if (fault == TransferFault::lost_write) continue;
    std::copy_n(from, last && fault == TransferFault::short_write ? block_bytes / 4 : block_bytes, to);
  }
  return CardStatus::ok;
}

}  // namespace pmt::tests

namespace pmt::board {

using tests::SimulatedCard;

void init() {}
void print(const char* text) { SimulatedCard::instance().log += text; }
StackUse stack_use() { return {1, 2}; }
uint32_t milliseconds() { return 0; }
void feed_watchdog() { SimulatedCard::instance().unfed_milliseconds = 0; }
void set_led(bool on) { SimulatedCard::instance().led = on; }

CardStatus open_card(uint32_t* blocks) { return SimulatedCard::instance().open(blocks); }

CardStatus read_blocks(uint32_t first, uint32_t count, void* bytes) {
  return SimulatedCard::instance().read(first, count, static_cast<uint8_t*>(bytes));
}

CardStatus write_blocks(uint32_t first, uint32_t count, const void* bytes) {
  return SimulatedCard::instance().write(first, count, static_cast<const uint8_t*>(bytes));
}

}  // namespace pmt::board
