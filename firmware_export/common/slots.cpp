#include "common/slots.hpp"

namespace pmt::firmware {
namespace {

constexpr uint32_t header_generation = 0;

// Moves through the parts as if they were one piece of memory.
class PartWalk {
 public:
  explicit PartWalk(const CheckpointParts& parts) : parts_(parts) { enter(0); }

  void copy_to(uint8_t* to, size_t count) {
    for (size_t i = 0; i < count; ++i) to[i] = *next();
  }
  void copy_from(const uint8_t* from, size_t count) {
    for (size_t i = 0; i < count; ++i) *next() = from[i];
  }

 private:
  void enter(int32_t index) {
    index_ = index;
    offset_ = 0;
    part_ = parts_.part(parts_.context, index);
  }
  uint8_t* next() {
    while (offset_ == part_.count) enter(index_ + 1);
    return part_.bytes + offset_++;
  }

  const CheckpointParts& parts_;
  CheckpointPart part_ = {};
  int32_t index_ = 0;
  size_t offset_ = 0;
};

bool has_magic(const SlotHeader& header) {
  for (int i = 0; i < 4; ++i) {
    if (header.magic[i] != slot_magic[i]) return false;
  }
  return true;
}

uint32_t payload_blocks(uint32_t bytes) { return static_cast<uint32_t>((bytes + payload_bytes - 1) / payload_bytes); }

}  // namespace

size_t checkpoint_bytes(const CheckpointParts& parts) {
  size_t bytes = 0;
  for (int32_t i = 0; i < parts.count; ++i) bytes += parts.part(parts.context, i).count;
  return bytes;
}

void Slots::open(Storage* storage, uint32_t first, uint32_t blocks, uint32_t model_crc32) {
  storage_ = storage;
  first_ = first;
  blocks_ = blocks;
  model_crc32_ = model_crc32;
}

void Slots::use(void* memory, size_t bytes) {
  memory_ = static_cast<Block*>(memory);
  const size_t blocks = bytes / sizeof(Block);
  memory_blocks_ = blocks < most_blocks_at_once ? static_cast<uint32_t>(blocks) : most_blocks_at_once;
}

uint32_t Slots::first_block(int32_t slot) const { return first_ + static_cast<uint32_t>(slot) * blocks_; }

bool Slots::is_plausible(const SlotHeader& header) const {
  return has_magic(header) && header.bytes <= capacity() &&
         (header.sequence == 0 || header.model_crc32 == model_crc32_);
}

Slots::State Slots::examine(int32_t slot, SlotHeader* header) {
  const uint8_t* payload = storage_->read(first_block(slot), header_generation);
  if (payload == nullptr) {
    if (!storage_->fault().damaged) return State::failed;
    storage_->forget_damage();
    return State::damaged;
  }
  __builtin_memcpy(header, payload, sizeof *header);
  if (!is_plausible(*header)) return State::damaged;
  return header->sequence == 0 ? State::blank : State::good;
}

Slots::State Slots::check_payload(int32_t slot, const SlotHeader& header) {
  for (uint32_t i = 0; i < payload_blocks(header.bytes); ++i) {
    if (storage_->read(first_block(slot) + 1 + i, header.sequence) != nullptr) continue;
    if (!storage_->fault().damaged) return State::failed;
    storage_->forget_damage();
    return State::damaged;
  }
  return State::good;
}

bool Slots::find() {
  SlotHeader headers[2];
  State states[2];
  for (int32_t slot = 0; slot < 2; ++slot) {
    states[slot] = examine(slot, &headers[slot]);
    if (states[slot] == State::failed) return false;
  }
  newest_ = {};
  slot_ = 1;
  highest_ = 0;
  const bool second_is_newer =
      states[1] == State::good && (states[0] != State::good || headers[1].sequence > headers[0].sequence);
  for (int32_t i = 0; i < 2; ++i) {
    const int32_t slot = second_is_newer ? 1 - i : i;
    if (states[slot] != State::good) continue;
    if (headers[slot].sequence > highest_) highest_ = headers[slot].sequence;
    const State payload = check_payload(slot, headers[slot]);
    if (payload == State::failed) return false;
    if (payload != State::good) continue;
    newest_ = headers[slot];
    slot_ = slot;
    return true;
  }
  // A power cut leaves no whole slot only before the first checkpoint is complete: one slot is blank
  // then, and the other has no header.
  const bool never_written = highest_ == 0 && (states[0] == State::blank || states[1] == State::blank);
  problem_ = never_written ? nullptr : "both checkpoints on the card are damaged: write card.img to it again";
  return never_written;
}

bool Slots::load(const CheckpointParts& parts) {
  if (newest_.bytes != checkpoint_bytes(parts)) {
    problem_ = "the checkpoint on the card has another size: write card.img to it again";
    return false;
  }
  PartWalk walk(parts);
  for (uint32_t done = 0, block = first_block(slot_) + 1; done < newest_.bytes; ++block) {
    const size_t rest = newest_.bytes - done;
    const size_t count = rest < payload_bytes ? rest : payload_bytes;
    const uint8_t* payload = storage_->read(block, newest_.sequence);
    if (payload == nullptr) return false;
    walk.copy_from(payload, count);
    done += static_cast<uint32_t>(count);
  }
  return true;
}

bool Slots::write_header(int32_t slot, const SlotHeader& header) {
  Block block = {};
  __builtin_memcpy(block.payload, &header, sizeof header);
  return storage_->write(first_block(slot), header_generation, &block, 1);
}

bool Slots::write_payload(const CheckpointParts& parts, uint32_t first, const SlotHeader& header) {
  Block one;
  Block* blocks = memory_blocks_ > 0 ? memory_ : &one;
  const uint32_t most = memory_blocks_ > 0 ? memory_blocks_ : 1;
  PartWalk walk(parts);
  uint32_t rest = header.bytes;
  while (rest > 0) {
    uint32_t filled = 0;
    for (; filled < most && rest > 0; ++filled) {
      const size_t count = rest < payload_bytes ? rest : payload_bytes;
      walk.copy_to(blocks[filled].payload, count);
      for (size_t i = count; i < payload_bytes; ++i) blocks[filled].payload[i] = 0;
      rest -= static_cast<uint32_t>(count);
    }
    if (!storage_->write(first, header.sequence, blocks, filled)) return false;
    first += filled;
  }
  return true;
}

bool Slots::save(const CheckpointParts& parts, uint32_t steps, uint32_t image_crc32) {
  const int32_t slot = 1 - slot_;
  // A number that no block of the slot can have: a checkpoint that was found damaged had a later one.
  SlotHeader header = {{}, highest_ + 1, steps, 0, model_crc32_, image_crc32};
  __builtin_memcpy(header.magic, slot_magic, sizeof header.magic);
  header.bytes = static_cast<uint32_t>(checkpoint_bytes(parts));
  if (!write_payload(parts, first_block(slot) + 1, header) || !write_header(slot, header)) return false;
  newest_ = header;
  highest_ = header.sequence;
  slot_ = slot;
  return true;
}

}  // namespace pmt::firmware
