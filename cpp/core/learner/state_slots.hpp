// States of a model in two slots of a storage, in the terms of MCUboot: a committed state is on trial until it is
// confirmed; one that is never confirmed is given up after a few boots, and the last confirmed one is back. The header
// is written last, so that at any moment the confirmed state is whole, whenever the power goes.
#pragma once

#include "core/base/status.hpp"
#include "core/learner/learner_state.hpp"

namespace pmt {

// Two slots on any medium: a card, internal or external flash, a file. Functions return false where it failed.
struct StateStorage {
  void* context;
  size_t slot_bytes;
  bool (*read)(void* context, int32_t slot, size_t at, void* to, size_t count);
  // Onto bytes that nothing was written to since erase(), or, where a power cut has torn a write, the same bytes again;
  // `at` and `count` are multiples of state_write_bytes.
  bool (*write)(void* context, int32_t slot, size_t at, const void* from, size_t count);
  bool (*erase)(void* context, int32_t slot);
};

// A multiple of what flash memories program at once.
constexpr size_t state_write_bytes = 32;
constexpr int32_t state_trials = 3;  // boots of a state that is not confirmed

class StateSlots {
 public:
  // The whole of a state, its header and marks included.
  static size_t bytes_needed(size_t state_bytes);
  static constexpr size_t bytes_before_state = (1 + 2 + state_trials) * state_write_bytes;

  // `identity`: of the model and what else decides how states are laid out; those of another are not there.
  void open(const StateStorage& storage, const Model& model, uint32_t identity);

  // Whether boot() has found a state of another identity, which the next write() may replace.
  bool has_others() const { return has_others_; }

  // Finds the state to boot with, and counts the boot of one on trial. original: there is none.
  Status boot(LearnerState* state, bool* on_trial);
  // Reads the state that boot() or write() has chosen.
  Status load(LearnerParameters& parameters);

  // Writes a state on trial over the slot that does not hold the confirmed one. Until confirm() it is given up where
  // roll_back() is called or trials are over.
  Status write(const LearnerParameters& parameters, LearnerState state);
  Status confirm();
  // The state that is in force again.
  Status roll_back(LearnerState* state);

 private:
  struct Header {
    uint32_t magic, version;
    uint32_t identity;
    uint32_t generation;
    uint32_t state;  // and, from bit 8 on, what a trained one is based on
    uint32_t bytes;
    uint32_t payload_crc32;
    uint32_t header_crc32;  // of what stands before it
  };
  static_assert(sizeof(Header) == state_write_bytes);
  // After the header: each is written once, into state_write_bytes of its own.
  enum Mark : int32_t { confirmed, rejected, first_boot };

  struct Slot {
    Header header;
    bool valid, is_confirmed, is_rejected;
    int32_t boots;
  };
  class Writer;

  static uint32_t checksum(const Header& header);
  static LearnerState state_of(const Header& header) { return static_cast<LearnerState>(header.state & 0xFFu); }
  Status read_slot(int32_t index, Slot* slot);
  Status read_mark(int32_t index, int32_t mark, bool* set) const;
  Status set_mark(int32_t mark);
  Status check_payload(int32_t index, Slot* slot) const;
  int32_t newest(bool on_trial) const;

  StateStorage storage_ = {};
  const Model* model_ = nullptr;
  uint32_t identity_ = 0;
  bool has_others_ = false;
  Slot slots_[2] = {};
  int32_t current_ = -1;  // the slot in force; -1: none
};

}  // namespace pmt
