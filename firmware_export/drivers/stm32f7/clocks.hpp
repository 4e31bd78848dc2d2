// The clock tree of an STM32F74x (RM0385 sections 3 to 5).
#pragma once

#include <cstdint>

namespace pmt::stm32f7 {

constexpr uint32_t reset_hz = 16'000'000;  // HSI
constexpr uint32_t core_hz = 216'000'000;
constexpr uint32_t apb2_hz = core_hz / 2;
constexpr uint32_t sdmmc_hz = 48'000'000;

// 216 MHz from a crystal of whole MHz, 4 to 26, or without one from the chip's own oscillator; with overdrive
// and 7 wait states (2.7 to 3.6 V); APB1 at 54 and APB2 at 108 MHz. False if the crystal or the PLL does not
// start: the clock stays 16 MHz.
bool start_216_mhz(uint32_t crystal_hz);

}  // namespace pmt::stm32f7
