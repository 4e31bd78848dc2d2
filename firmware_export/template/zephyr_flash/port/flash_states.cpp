#include "port/flash_states.hpp"

#include <zephyr/storage/flash_map.h>

#if !FIXED_PARTITION_EXISTS(storage_partition)
#error "the board's tree has no storage_partition: add one, or export with --states card"
#endif

namespace pmt::zephyr {
namespace {

constexpr size_t slot_bytes = FIXED_PARTITION_SIZE(storage_partition) / 2;
const flash_area* area = nullptr;

bool is_in_slot(size_t at, size_t count) { return at <= slot_bytes && count <= slot_bytes - at; }

off_t place(int32_t slot, size_t at) { return static_cast<off_t>(static_cast<size_t>(slot) * slot_bytes + at); }

bool read(void*, int32_t slot, size_t at, void* to, size_t count) {
  return is_in_slot(at, count) && flash_area_read(area, place(slot, at), to, count) == 0;
}

// A worn cell keeps its bit: what is written is read back.
bool write(void*, int32_t slot, size_t at, const void* from, size_t count) {
  if (!is_in_slot(at, count) || flash_area_write(area, place(slot, at), from, count) != 0) return false;
  const auto* bytes = static_cast<const uint8_t*>(from);
  for (size_t i = 0; i < count; i += state_write_bytes) {
    uint8_t kept[state_write_bytes];
    if (!read(nullptr, slot, at + i, kept, sizeof kept)) return false;
    if (__builtin_memcmp(kept, bytes + i, sizeof kept) != 0) return false;
  }
  return true;
}

bool erase(void*, int32_t slot) { return flash_area_erase(area, place(slot, 0), slot_bytes) == 0; }

}  // namespace

const StateStorage* open_flash_states(size_t state_bytes) {
  static constexpr StateStorage storage = {nullptr, slot_bytes, read, write, erase};
  if (StateSlots::bytes_needed(state_bytes) > slot_bytes) return nullptr;
  if (flash_area_open(FIXED_PARTITION_ID(storage_partition), &area) != 0) return nullptr;
  return state_write_bytes % flash_area_align(area) == 0 ? &storage : nullptr;
}

}  // namespace pmt::zephyr
