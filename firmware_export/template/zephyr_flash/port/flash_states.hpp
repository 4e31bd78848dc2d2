// States of a learner in the flash's partition `storage_partition`, a half each. A half must be whole pages, because it
// is erased by itself.
#pragma once

#include "core/card/state_slots.hpp"

namespace pmt::zephyr {

// Null where the flash cannot be opened or written so, or a state is larger than a half.
const StateStorage* open_flash_states(size_t state_bytes);

}  // namespace pmt::zephyr
