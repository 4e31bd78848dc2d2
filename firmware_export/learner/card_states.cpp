#include "learner/card_states.hpp"

namespace pmt::firmware {
namespace {

constexpr uint8_t erased = 0xFF;

}  // namespace

bool CardStates::open(size_t slot_bytes) {
  uint32_t blocks = 0;
  slot_blocks_ = static_cast<uint32_t>((slot_bytes + board::block_bytes - 1) / board::block_bytes);
  if (board::open_card(&blocks) != board::CardStatus::ok || blocks / 2 < slot_blocks_) return false;
  storage_ = {this, size_t{slot_blocks_} * board::block_bytes, read, write, erase};
  return true;
}

uint32_t CardStates::block_of(int32_t slot, size_t at) const {
  return static_cast<uint32_t>(slot) * slot_blocks_ + static_cast<uint32_t>(at / board::block_bytes);
}

bool CardStates::load(uint32_t block) {
  if (block == loaded_) return true;
  loaded_ = UINT32_MAX;
  board::feed_watchdog();
  if (board::read_blocks(block, 1, block_) != board::CardStatus::ok) return false;
  loaded_ = block;
  return true;
}

bool CardStates::read(void* context, int32_t slot, size_t at, void* to, size_t count) {
  CardStates& self = *static_cast<CardStates*>(context);
  auto* bytes = static_cast<uint8_t*>(to);
  for (size_t i = 0; i < count; ++i) {
    if (!self.load(self.block_of(slot, at + i))) return false;
    bytes[i] = self.block_[(at + i) % board::block_bytes];
  }
  return true;
}

bool CardStates::write(void* context, int32_t slot, size_t at, const void* from, size_t count) {
  CardStates& self = *static_cast<CardStates*>(context);
  const auto* bytes = static_cast<const uint8_t*>(from);
  for (size_t i = 0; i < count; ++i) {
    const uint32_t block = self.block_of(slot, at + i);
    if (!self.load(block)) return false;
    self.block_[(at + i) % board::block_bytes] = bytes[i];
    const bool ends = i + 1 == count || self.block_of(slot, at + i + 1) != block;
    if (ends && board::write_blocks(block, 1, self.block_) != board::CardStatus::ok) return false;
  }
  return true;
}

// Header and marks are in the first block; nothing is read of a slot without them.
bool CardStates::erase(void* context, int32_t slot) {
  static_assert(StateSlots::bytes_before_state <= board::block_bytes);
  CardStates& self = *static_cast<CardStates*>(context);
  for (uint8_t& byte : self.block_) byte = erased;
  self.loaded_ = self.block_of(slot, 0);
  return board::write_blocks(self.loaded_, 1, self.block_) == board::CardStatus::ok;
}

bool open_card_states(size_t slot_bytes, StateStorage* storage) {
  static CardStates states;
  if (!states.open(slot_bytes)) return false;
  *storage = states.storage();
  return true;
}

}  // namespace pmt::firmware
