// States of a learner on the board's card: two slots of blocks from the first one on.
#pragma once

#include "common/board.hpp"
#include "core/learner/state_slots.hpp"

namespace pmt::firmware {

class CardStates {
 public:
  // False where the board has no card, or one too small for two such slots.
  bool open(size_t slot_bytes);
  const StateStorage& storage() const { return storage_; }

 private:
  uint32_t block_of(int32_t slot, size_t at) const;
  bool load(uint32_t block);
  static bool read(void* context, int32_t slot, size_t at, void* to, size_t count);
  static bool write(void* context, int32_t slot, size_t at, const void* from, size_t count);
  static bool erase(void* context, int32_t slot);

  StateStorage storage_ = {};
  uint32_t slot_blocks_ = 0;
  alignas(4) uint8_t block_[board::block_bytes] = {};
  uint32_t loaded_ = UINT32_MAX;  // the block in memory
};

// Opens the states of the program's card; `storage` is valid until the program ends.
bool open_card_states(size_t slot_bytes, StateStorage* storage);

}  // namespace pmt::firmware
