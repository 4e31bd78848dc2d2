// A training stand-in whose state says what it should be: the state after n steps is a function of n.
#pragma once

#include <vector>

#include "common/slots.hpp"
#include "tests/card/simulated_card.hpp"

namespace pmt::tests {

constexpr uint32_t counting_model = 0x1234abcd;
constexpr uint32_t counting_slot_blocks = 6;

// Three parts, one of them empty: 4 blocks of payload, the last one partly used.
class CountingRun {
 public:
  // `blocks_at_once`: what the slots get to put blocks together in.
  explicit CountingRun(size_t blocks_at_once = 3)
      : memory_(blocks_at_once), parts_{std::vector<uint8_t>(700), {}, std::vector<uint8_t>(1001)} {
    set(0);
  }

  // A card for it, with blank slots.
  static void format();

  // From reset to the last checkpoint. False where the card fails.
  bool start();
  // With a checkpoint after every `interval` steps.
  bool run_to(uint32_t steps, uint32_t interval = 1);

  uint32_t steps() const { return steps_; }
  // The steps of the last checkpoint that the slots said is safe.
  uint32_t safe_steps() const { return safe_steps_; }
  bool is_consistent() const;
  const firmware::Slots& slots() const { return slots_; }
  const firmware::Storage& storage() const { return storage_; }

 private:
  static uint8_t value(uint32_t steps, size_t part, size_t index);
  static firmware::CheckpointPart part(const void* context, int32_t index);
  void set(uint32_t steps);
  firmware::CheckpointParts parts() const { return {this, 3, part}; }

  std::vector<Block> memory_;
  std::vector<uint8_t> parts_[3];
  uint32_t steps_ = 0;
  uint32_t safe_steps_ = 0;
  firmware::Storage storage_;
  firmware::Slots slots_;
};

}  // namespace pmt::tests
