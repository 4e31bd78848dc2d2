// Stands in for what an export writes.
#pragma once

#include "drivers/stm32/board.hpp"

namespace pmt::exported {

constexpr stm32::Wiring wiring = {stm32::Supply::smps, 24'000'000};

}  // namespace pmt::exported
