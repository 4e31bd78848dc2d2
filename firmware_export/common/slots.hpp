// Checkpoints in two slots of the card that are written in turn. A slot's header is written last, so
// that at any moment one slot holds a whole checkpoint: whenever the power goes, and whatever of the
// block under way is written then.
#pragma once

#include "common/storage.hpp"

namespace pmt::firmware {

struct CheckpointPart {
  uint8_t* bytes;
  size_t count;
};

// The parts of a checkpoint, in order. Loading writes to the same memory.
struct CheckpointParts {
  const void* context;
  int32_t count;
  CheckpointPart (*part)(const void* context, int32_t index);
};

class Slots {
 public:
  // The slots stand one after the other from block `first`.
  void open(Storage* storage, uint32_t first, uint32_t blocks, uint32_t model_crc32);
  // Memory in which save() may put blocks together, to write several at once; nothing is kept in it between
  // steps. Without it they are written one by one.
  void use(void* memory, size_t bytes);

  // Finds the newest whole checkpoint: newest().sequence is 0 where none was ever written. False when
  // the card fails, or when both are damaged, which no power cut can do: see problem().
  bool find();
  const SlotHeader& newest() const { return newest_; }
  // Bytes that a checkpoint may have.
  size_t capacity() const { return (blocks_ - 1) * payload_bytes; }

  // Reads the newest checkpoint; false when its size is another or the card fails.
  bool load(const CheckpointParts& parts);
  // Writes the next one over the older slot. Where it fails, newest() stays what it was.
  bool save(const CheckpointParts& parts, uint32_t steps, uint32_t image_crc32);

  // Why find() or load() failed, where the storage has no fault; else nullptr.
  const char* problem() const { return problem_; }

 private:
  enum class State { blank, good, damaged, failed };
  State examine(int32_t slot, SlotHeader* header);
  bool is_plausible(const SlotHeader& header) const;
  State check_payload(int32_t slot, const SlotHeader& header);
  uint32_t first_block(int32_t slot) const;
  bool write_header(int32_t slot, const SlotHeader& header);

  bool write_payload(const CheckpointParts& parts, uint32_t first, const SlotHeader& header);

  Storage* storage_ = nullptr;
  Block* memory_ = nullptr;
  uint32_t memory_blocks_ = 0;
  uint32_t first_ = 0;
  uint32_t blocks_ = 0;
  uint32_t model_crc32_ = 0;
  SlotHeader newest_ = {};
  uint32_t highest_ = 0;  // sequence number of any header, whether its checkpoint is whole or not
  int32_t slot_ = 1;      // of the newest; the first checkpoint goes to slot 0
  const char* problem_ = nullptr;
};

size_t checkpoint_bytes(const CheckpointParts& parts);

}  // namespace pmt::firmware
