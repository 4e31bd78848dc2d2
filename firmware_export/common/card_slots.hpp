// The two slots of states on a card, one after the other: a block for header and marks, then those of the state.
#pragma once

#include "common/storage.hpp"
#include "core/card/state_slots.hpp"

namespace pmt::firmware {

class CardSlots {
 public:
  static uint32_t blocks_needed(size_t state_bytes);

  // Slots of `blocks` each, from block `first` on. While a state is written, the card is used for nothing else, and
  // blocks may be put together in `memory`, so that several are written at once; without it they are written one by
  // one.
  void open(Storage* card, uint32_t first, uint32_t blocks, void* memory = nullptr, size_t bytes = 0);

  // From now on, what has failed is tried again with the next access: by then the card may be another one.
  void forget_faults() { forgets_ = true; }

  const StateStorage& storage() const { return storage_; }

 private:
  uint32_t first_block(int32_t slot) const { return first_ + static_cast<uint32_t>(slot) * blocks_; }
  Storage& card() const;
  bool flush();
  static bool read(void* context, int32_t slot, size_t at, void* to, size_t count);
  static bool write(void* context, int32_t slot, size_t at, const void* from, size_t count);
  static bool erase(void* context, int32_t slot);

  Storage* card_ = nullptr;
  StateStorage storage_ = {};
  bool forgets_ = false;
  uint32_t first_ = 0, blocks_ = 0;
  Block* staged_ = nullptr;
  size_t room_ = 0, filled_ = 0;  // bytes of payload there
  uint32_t next_ = 0;             // the block that the first of them is for
};

// Slots of the program's card from its first block on; null where the board has no card, or one too small for two such
// states.
const StateStorage* open_card_states(size_t state_bytes);

}  // namespace pmt::firmware
