// Addresses and bits of the STM32F74x that are used, named as in RM0385.
#pragma once

#include "drivers/stm32/board.hpp"

namespace pmt::stm32f7 {

constexpr uint32_t IWDG = 0x40003000;
constexpr uint32_t USART1 = 0x40011000;
constexpr uint32_t SDMMC1 = 0x40012C00;
constexpr uint32_t GPIOA = 0x40020000;
constexpr uint32_t GPIOB = 0x40020400;
constexpr uint32_t GPIOC = 0x40020800;
constexpr uint32_t GPIOD = 0x40020C00;
constexpr uint32_t GPIOI = 0x40022000;

constexpr uint32_t PWR_CR1 = 0x40007000;
constexpr uint32_t PWR_CR1_VOS = 3u << 14;  // 3: scale 1
constexpr uint32_t PWR_CR1_ODEN = 1u << 16;
constexpr uint32_t PWR_CR1_ODSWEN = 1u << 17;
constexpr uint32_t PWR_CSR1 = 0x40007004;
constexpr uint32_t PWR_CSR1_ODRDY = 1u << 16;
constexpr uint32_t PWR_CSR1_ODSWRDY = 1u << 17;

constexpr uint32_t RCC_CR = 0x40023800;
constexpr uint32_t RCC_CR_HSEON = 1u << 16;
constexpr uint32_t RCC_CR_HSERDY = 1u << 17;
constexpr uint32_t RCC_CR_PLLON = 1u << 24;
constexpr uint32_t RCC_CR_PLLRDY = 1u << 25;
constexpr uint32_t RCC_PLLCFGR = 0x40023804;
constexpr uint32_t RCC_PLLCFGR_PLLSRC_HSE = 1u << 22;
constexpr uint32_t RCC_PLLCFGR_fields = 0x0F437FFF;  // PLLQ, PLLSRC, PLLP, PLLN, PLLM
constexpr uint32_t RCC_CFGR = 0x40023808;
constexpr uint32_t RCC_CFGR_SW = 3u << 0;
constexpr uint32_t RCC_CFGR_SW_PLL = 2u << 0;
constexpr uint32_t RCC_CFGR_SWS = 3u << 2;
constexpr uint32_t RCC_CFGR_SWS_PLL = 2u << 2;
constexpr uint32_t RCC_CFGR_HPRE = 15u << 4;
constexpr uint32_t RCC_CFGR_PPRE1 = 7u << 10;
constexpr uint32_t RCC_CFGR_PPRE1_DIV4 = 5u << 10;
constexpr uint32_t RCC_CFGR_PPRE2 = 7u << 13;
constexpr uint32_t RCC_CFGR_PPRE2_DIV2 = 4u << 13;
constexpr uint32_t RCC_AHB1ENR = 0x40023830;  // bit x: GPIOx
constexpr uint32_t RCC_APB1ENR = 0x40023840;
constexpr uint32_t RCC_APB1ENR_PWREN = 1u << 28;
constexpr uint32_t RCC_APB2ENR = 0x40023844;
constexpr uint32_t RCC_APB2ENR_USART1EN = 1u << 4;
constexpr uint32_t RCC_APB2ENR_SDMMC1EN = 1u << 11;

constexpr uint32_t RCC_CSR = 0x40023874;
constexpr uint32_t RCC_CSR_RMVF = 1u << 24;
constexpr uint32_t RCC_CSR_BORRSTF = 1u << 25;
constexpr uint32_t RCC_CSR_PINRSTF = 1u << 26;
constexpr uint32_t RCC_CSR_PORRSTF = 1u << 27;
constexpr uint32_t RCC_CSR_SFTRSTF = 1u << 28;
constexpr uint32_t RCC_CSR_IWDGRSTF = 1u << 29;

constexpr uint32_t FLASH_ACR = 0x40023C00;
constexpr uint32_t FLASH_ACR_LATENCY = 15u;
constexpr uint32_t FLASH_ACR_PRFTEN = 1u << 8;
constexpr uint32_t FLASH_ACR_ARTEN = 1u << 9;
constexpr uint32_t FLASH_KEYR = 0x40023C04;
constexpr uint32_t FLASH_SR = 0x40023C0C;
constexpr uint32_t FLASH_SR_errors = 0xF2;  // ERSERR, PGPERR, PGAERR, WRPERR, OPERR
constexpr uint32_t FLASH_SR_BSY = 1u << 16;
constexpr uint32_t FLASH_CR = 0x40023C10;
constexpr uint32_t FLASH_CR_PG = 1u << 0;
constexpr uint32_t FLASH_CR_SER = 1u << 1;
constexpr uint32_t FLASH_CR_SNB_shift = 3;
constexpr uint32_t FLASH_CR_PSIZE_x32 = 2u << 8;
constexpr uint32_t FLASH_CR_STRT = 1u << 16;
constexpr uint32_t FLASH_CR_LOCK = 1u << 31;

constexpr uint32_t DBGMCU_APB1_FZ = 0xE0042008;
constexpr uint32_t DBGMCU_APB1_FZ_IWDG_STOP = 1u << 12;

// The clock tree of an STM32F74x (RM0385 sections 3 to 5).
constexpr uint32_t reset_hz = 16'000'000;  // HSI
constexpr uint32_t core_hz = 216'000'000;
constexpr uint32_t apb2_hz = core_hz / 2;
constexpr uint32_t sdmmc_hz = 48'000'000;

// 216 MHz from a crystal of whole MHz, 4 to 26, or without one from the chip's own oscillator; with overdrive
// and 7 wait states (2.7 to 3.6 V); APB1 at 54 and APB2 at 108 MHz. False if the crystal or the PLL does not
// start: the clock stays 16 MHz.
bool start_216_mhz(uint32_t crystal_hz);

constexpr stm32::Watchdog watchdog = {IWDG, DBGMCU_APB1_FZ, DBGMCU_APB1_FZ_IWDG_STOP};
constexpr stm32::ResetFlags reset_flags = {
    RCC_CSR, RCC_CSR_PORRSTF | RCC_CSR_BORRSTF, RCC_CSR_IWDGRSTF, RCC_CSR_SFTRSTF, RCC_CSR_PINRSTF, RCC_CSR_RMVF};

}  // namespace pmt::stm32f7
