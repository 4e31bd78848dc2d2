// The description of an STM32 board, for the functions of common/board.hpp that board.cpp defines once for all.
#pragma once

#include "drivers/stm32/peripherals.hpp"
#include "drivers/stm32/sdmmc.hpp"

namespace pmt::stm32 {

// Supply of the core: the linear regulator, the step-down converter, or the first behind the second.
enum class Supply { ldo, smps, smps_1v8_ldo, smps_2v5_ldo };

// The wiring of a board, as far as its chip must be told: model/wiring.hpp defines it, from the target's file.
struct Wiring {
  Supply supply;
  uint32_t crystal_hz;  // 0: none, the chip's own oscillator does
};

struct Description {
  const char* name;
  bool (*start_clocks)();  // and those of the peripherals in any case
  uint32_t core_hz;        // once the clocks run
  uint32_t reset_hz;       // if they do not
  uint32_t usart;
  uint32_t usart_hz;
  Pin transmit;
  Pin receive;
  uint32_t usart_function;
  Pin led;
  Watchdog watchdog;
  ResetFlags reset;
  Sdmmc::Setup sdmmc;
  Pin sdmmc_pins[6];  // CK, CMD, D0 to D3
  uint32_t sdmmc_function;
  Pin card_detect;  // on where a card is in
};

// boards/NAME/board.cpp defines it.
extern const Description description;

}  // namespace pmt::stm32
