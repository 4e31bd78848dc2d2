// The wiring of a board, as far as its chip must be told: model/wiring.hpp defines it, from the target's file.
#pragma once

#include <cstdint>

namespace pmt::stm32 {

// Supply of the core: the linear regulator, the step-down converter, or the first behind the second.
enum class Supply { ldo, smps, smps_1v8_ldo, smps_2v5_ldo };

struct Wiring {
  Supply supply;
  uint32_t crystal_hz;  // 0: none, the chip's own oscillator does
};

}  // namespace pmt::stm32
