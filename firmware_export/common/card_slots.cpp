#include "common/card_slots.hpp"

namespace pmt::firmware {
namespace {

constexpr size_t before_state = StateSlots::bytes_before_state;
static_assert(before_state <= payload_bytes);

// From a slot's first block on.
size_t payload_offset(size_t at) { return at < before_state ? at : payload_bytes + (at - before_state); }

}  // namespace

uint32_t CardSlots::blocks_needed(size_t state_bytes) {
  const size_t written = StateSlots::bytes_needed(state_bytes) - before_state;
  return static_cast<uint32_t>(1 + (written + payload_bytes - 1) / payload_bytes);
}

void CardSlots::open(Storage* card, uint32_t first, uint32_t blocks, void* memory, size_t bytes) {
  card_ = card;
  first_ = first;
  blocks_ = blocks;
  storage_ = {this, before_state + (blocks - 1) * payload_bytes, read, write, erase};
  size_t room = bytes / sizeof(Block);
  if (room > most_blocks_at_once) room = most_blocks_at_once;
  staged_ = room > 0 ? static_cast<Block*>(memory) : card->block();
  room_ = room > 0 ? room * payload_bytes : payload_bytes;
}

Storage& CardSlots::card() const {
  if (forgets_) card_->forget_fault();
  return *card_;
}

bool CardSlots::read(void* context, int32_t slot, size_t at, void* to, size_t count) {
  const CardSlots& self = *static_cast<CardSlots*>(context);
  return self.card().read_bytes(self.first_block(slot), payload_offset(at), to, count, true);
}

bool CardSlots::write(void* context, int32_t slot, size_t at, const void* from, size_t count) {
  CardSlots& self = *static_cast<CardSlots*>(context);
  if (at < before_state) return self.flush() && self.card().change(self.first_block(slot), at, from, count);
  const auto* bytes = static_cast<const uint8_t*>(from);
  for (size_t i = 0; i < count; ++i) {
    self.staged_[self.filled_ / payload_bytes].payload[self.filled_ % payload_bytes] = bytes[i];
    if (++self.filled_ == self.room_ && !self.flush()) return false;
  }
  return true;
}

bool CardSlots::flush() {
  for (; filled_ % payload_bytes != 0; ++filled_) staged_[filled_ / payload_bytes].payload[filled_ % payload_bytes] = 0;
  const auto count = static_cast<uint32_t>(filled_ / payload_bytes);
  filled_ = 0;
  next_ += count;
  return count == 0 || card_->write(next_ - count, staged_, count);
}

// Nothing is read of a slot without header and marks.
bool CardSlots::erase(void* context, int32_t slot) {
  CardSlots& self = *static_cast<CardSlots*>(context);
  self.filled_ = 0;
  self.next_ = self.first_block(slot) + 1;
  return self.card().erase(self.first_block(slot));
}

const StateStorage* open_card_states(size_t state_bytes) {
  static Storage card;
  static CardSlots slots;
  const uint32_t blocks = CardSlots::blocks_needed(state_bytes);
  if (!card.open() || card.blocks() / 2 < blocks) return nullptr;
  slots.open(&card, 0, blocks);
  slots.forget_faults();
  return &slots.storage();
}

}  // namespace pmt::firmware
