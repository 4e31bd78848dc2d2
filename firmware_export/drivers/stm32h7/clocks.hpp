// The clock tree of an STM32H7A3/7B3 (RM0455 sections 4, 6 and 8).
#pragma once

#include <cstdint>

#include "drivers/stm32/wiring.hpp"

namespace pmt::stm32h7 {

constexpr uint32_t reset_hz = 64'000'000;  // HSI
constexpr uint32_t core_hz = 280'000'000;
constexpr uint32_t apb2_hz = core_hz / 2;
constexpr uint32_t sdmmc_hz = 560'000'000 / 12;

// 280 MHz from a crystal of even MHz, 4 to 50, or without one from the chip's own oscillator; voltage scale 0,
// 6 wait states; every APB at 140 MHz. False if supply, crystal or PLL do not start: the clock stays 64 MHz.
bool start_280_mhz(const stm32::Wiring& wiring);

}  // namespace pmt::stm32h7
