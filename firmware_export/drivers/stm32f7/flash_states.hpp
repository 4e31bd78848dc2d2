// States of a learner in the chip's own flash: its last two sectors (RM0385 section 3), a slot each. The program must
// end below them. While a sector is erased, for up to four seconds, the processor waits.
#pragma once

#include "core/card/state_slots.hpp"

namespace pmt::stm32f7 {

constexpr uint32_t first_state_sector = 6;
constexpr uint32_t state_slots_origin = 0x08080000;
constexpr uint32_t state_slot_bytes = 256 * 1024;

// Null where a state is larger than a sector.
const StateStorage* open_flash_states(size_t state_bytes);

}  // namespace pmt::stm32f7
