// Watchdog and reset flags of the STM32F74x.
#pragma once

#include "drivers/stm32/reset_cause.hpp"
#include "drivers/stm32/watchdog.hpp"
#include "drivers/stm32f7/registers.hpp"

namespace pmt::stm32f7 {

constexpr stm32::Watchdog watchdog = {IWDG, DBGMCU_APB1_FZ, DBGMCU_APB1_FZ_IWDG_STOP};
constexpr stm32::ResetFlags reset_flags = {
    RCC_CSR, RCC_CSR_PORRSTF | RCC_CSR_BORRSTF, RCC_CSR_IWDGRSTF, RCC_CSR_SFTRSTF, RCC_CSR_PINRSTF, RCC_CSR_RMVF};

}  // namespace pmt::stm32f7
