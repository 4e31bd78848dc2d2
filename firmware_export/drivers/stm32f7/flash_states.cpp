#include "drivers/stm32f7/flash_states.hpp"

#include "common/board.hpp"
#include "drivers/cortex_m/processor.hpp"
#include "drivers/io.hpp"
#include "drivers/stm32f7/chip.hpp"

namespace pmt::stm32f7 {
namespace {

constexpr uint32_t word_bytes = sizeof(uint32_t);

uint32_t address_of(int32_t slot, size_t at) {
  return state_slots_origin + static_cast<uint32_t>(slot) * state_slot_bytes + static_cast<uint32_t>(at);
}

bool is_in_slot(size_t at, size_t count) { return at <= state_slot_bytes && count <= state_slot_bytes - at; }

// The controller is unlocked for the time of one request.
class Unlocked {
 public:
  explicit Unlocked(uint32_t control) {
    wait();
    if ((io::read(FLASH_CR) & FLASH_CR_LOCK) != 0) {  // else the keys would lock it until the next reset
      io::write(FLASH_KEYR, 0x45670123);
      io::write(FLASH_KEYR, 0xCDEF89AB);
    }
    io::write(FLASH_SR, FLASH_SR_errors);  // those of before, which writing clears
    io::write(FLASH_CR, control);
  }
  ~Unlocked() { io::write(FLASH_CR, FLASH_CR_LOCK); }
  Unlocked(const Unlocked&) = delete;
  Unlocked& operator=(const Unlocked&) = delete;

  // Whether what was begun is done without an error.
  static bool finish() {
    wait();
    return (io::read(FLASH_SR) & FLASH_SR_errors) == 0;
  }

 private:
  static void wait() {
    while ((io::read(FLASH_SR) & FLASH_SR_BSY) != 0) board::feed_watchdog();
  }
};

bool read(void* context, int32_t slot, size_t at, void* to, size_t count) {
  (void)context;
  if (!is_in_slot(at, count)) return false;
  auto* bytes = static_cast<uint8_t*>(to);
  for (size_t i = 0; i < count; ++i) {
    const uint32_t address = address_of(slot, at + i), offset = address % word_bytes;
    bytes[i] = static_cast<uint8_t>(io::read(address - offset) >> (8 * offset));
  }
  return true;
}

// A worn cell keeps its bit: each word is read back, which waits until it is programmed.
bool write(void* context, int32_t slot, size_t at, const void* from, size_t count) {
  (void)context;
  if (!is_in_slot(at, count)) return false;
  const auto* bytes = static_cast<const uint8_t*>(from);
  const Unlocked flash(FLASH_CR_PG | FLASH_CR_PSIZE_x32);
  for (size_t i = 0; i < count; i += word_bytes) {
    uint32_t word;
    __builtin_memcpy(&word, bytes + i, word_bytes);
    io::write(address_of(slot, at + i), word);
    const uint32_t kept = io::read(address_of(slot, at + i));
    if (!Unlocked::finish() || kept != word) return false;
  }
  return true;
}

bool erase(void* context, int32_t slot) {
  (void)context;
  const uint32_t sector = first_state_sector + static_cast<uint32_t>(slot);
  const uint32_t control = FLASH_CR_SER | sector << FLASH_CR_SNB_shift | FLASH_CR_PSIZE_x32;
  const Unlocked flash(control);
  io::write(FLASH_CR, control | FLASH_CR_STRT);
  return Unlocked::finish();
}

}  // namespace

static_assert(state_write_bytes % word_bytes == 0);

const StateStorage* open_flash_states(size_t state_bytes) {
  static constexpr StateStorage storage = {nullptr, state_slot_bytes, read, write, erase};
  const bool fits = StateSlots::bytes_needed(state_bytes) <= state_slot_bytes;
  return fits && cortex_m::allow_writes(state_slots_origin, 2 * state_slot_bytes) ? &storage : nullptr;
}

}  // namespace pmt::stm32f7
