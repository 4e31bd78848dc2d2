// States in two slots of a storage, in the terms of MCUboot: a committed state is on trial until it is confirmed; one
// that is never confirmed is given up after a few boots, and the last confirmed one is back. A state may also be
// confirmed from the start. The header is written last, so that at any moment the confirmed state is whole, whenever
// the power goes.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/base/status.hpp"

namespace pmt {

// Two slots on any medium: a card, internal or external flash, a file. Functions return false where it failed.
struct StateStorage {
  void* context;
  size_t slot_bytes;
  bool (*read)(void* context, int32_t slot, size_t at, void* to, size_t count);
  // Onto bytes that nothing was written to since erase(), or, where a power cut has torn a write, the same bytes again;
  // `at` and `count` are multiples of state_write_bytes. After erase() the state itself comes in order, then its
  // header.
  bool (*write)(void* context, int32_t slot, size_t at, const void* from, size_t count);
  bool (*erase)(void* context, int32_t slot);

  bool has_functions() const { return read != nullptr && write != nullptr && erase != nullptr; }
};

constexpr uint32_t state_magic = 0x534D5450;  // "PTMS"
constexpr uint32_t state_version = 1;
// A multiple of what flash memories program at once.
constexpr size_t state_write_bytes = 32;
constexpr int32_t state_trials = 3;  // boots of a state that is not confirmed

// One piece of a state in memory.
struct StatePart {
  uint8_t* bytes;
  size_t count;
};

// The pieces of a state in order; null bytes at the end. Loading writes to the same memory.
struct StateParts {
  const void* context;
  StatePart (*part)(const void* context, int32_t index);

  StatePart operator[](int32_t index) const { return part(context, index); }
  size_t bytes() const;
};

// The first bytes of a slot. Marks follow, then the state.
struct StateHeader {
  uint32_t magic, version;
  uint32_t identity;
  uint32_t generation;  // from 1
  uint32_t tag;         // what its writer says of the state; bit 31: confirmed from the start
  uint32_t bytes;
  uint32_t payload_crc32;
  uint32_t header_crc32;  // of what stands before it
};
static_assert(sizeof(StateHeader) == state_write_bytes, "part of the file format");

class StateSlots {
 public:
  static constexpr size_t bytes_before_state = (1 + 2 + state_trials) * state_write_bytes;
  // The whole of a state, its header and marks included.
  static size_t bytes_needed(size_t state_bytes);
  // A header's own, of what stands before it.
  static uint32_t checksum(const StateHeader& header);

  // `identity`: of the model and what else decides how states are laid out; those of another are not there.
  void open(const StateStorage& storage, uint32_t identity);

  // Finds the state to boot with, and counts the boot of one on trial; not where that was in force and nothing was
  // reset since.
  Status boot(bool is_reset = true);
  // Whether boot() has found a state of another identity, which the next write() may replace.
  bool has_others() const { return has_others_; }
  // Whether boot() has found a slot whose header was written to, if only a part of it is left, and that holds no state
  // which this version can read. An erase() that a power cut has stopped within the header leaves the same.
  bool has_damaged() const;
  // Whether boot() has found that no state was ever whole, on a storage of zeros.
  bool never_written() const;

  // The state that is chosen: by boot() or roll_back(), if there is one, or by write().
  bool has_state() const { return current_ >= 0; }
  uint32_t tag() const { return slots_[current_].header.tag & ~confirmed_bit; }
  uint32_t generation() const { return slots_[current_].header.generation; }
  bool on_trial() const { return has_state() && !slots_[current_].is_confirmed; }
  // Fails where the storage no longer holds it as it was then.
  Status load(const StateParts& parts) const;

  // Writes a state over the slot that does not hold the confirmed one; not over a confirmed one that boot() could
  // not read. One on trial is given up where roll_back() is called, or trials are over, before confirm(). The tag
  // has 31 bits.
  Status write(const StateParts& parts, uint32_t tag, bool on_trial);
  // Fails where load() would, and leaves the state on trial. Not after a roll_back() that failed: that can only be
  // tried again.
  Status confirm();
  Status roll_back();

 private:
  static constexpr uint32_t confirmed_bit = 1u << 31;
  // After the header: each is written once, into state_write_bytes of its own.
  enum Mark : int32_t { confirmed, rejected, first_boot };

  struct Slot {
    StateHeader header;
    bool is_blank, is_whole;  // a header of zeros; a whole one, whatever stands behind it
    bool is_damaged;
    bool is_unread;  // it is confirmed, and the storage failed
    bool is_valid, is_confirmed, is_rejected;
    int32_t boots;
  };
  class Writer;

  static Status failed(int32_t index);
  bool read(int32_t index, size_t at, void* to, size_t count) const;
  // These are false where the storage failed.
  bool read_slot(int32_t index);
  // Reads the marks of trials, which a learner alone has.
  bool read_marks(int32_t index);
  bool set_mark(int32_t mark);
  // Whether the storage holds what was read or written.
  bool has_header(int32_t index) const;
  enum class Payload { whole, damaged, unread };
  Payload find_payload(int32_t index) const;
  int32_t newest(bool on_trial, int32_t most_boots = state_trials - 1) const;

  StateStorage storage_ = {};
  uint32_t identity_ = 0;
  bool has_others_ = false;
  Slot slots_[2] = {};
  int32_t current_ = -1;  // the slot of the chosen state; -1: none
};

}  // namespace pmt
