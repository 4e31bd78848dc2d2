// Watchdog and reset flags of the STM32H7A3/7B3.
#pragma once

#include "drivers/stm32/reset_cause.hpp"
#include "drivers/stm32/watchdog.hpp"
#include "drivers/stm32h7/registers.hpp"

namespace pmt::stm32h7 {

constexpr stm32::Watchdog watchdog = {IWDG1, DBGMCU_APB4FZ1, DBGMCU_APB4FZ1_IWDG1};
constexpr stm32::ResetFlags reset_flags = {
    RCC_RSR, RCC_RSR_PORRSTF | RCC_RSR_BORRSTF, RCC_RSR_IWDGRSTF, RCC_RSR_SFTRSTF, RCC_RSR_PINRSTF, RCC_RSR_RMVF};

}  // namespace pmt::stm32h7
