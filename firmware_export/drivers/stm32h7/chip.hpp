// Addresses and bits of the STM32H7A3/7B3 that are used, named as in RM0455.
#pragma once

#include "drivers/stm32/board.hpp"

namespace pmt::stm32h7 {

constexpr uint32_t USART1 = 0x40011000;
constexpr uint32_t SDMMC1 = 0x52007000;
constexpr uint32_t GPIOA = 0x58020000;
constexpr uint32_t GPIOC = 0x58020800;
constexpr uint32_t GPIOD = 0x58020C00;
constexpr uint32_t GPIOG = 0x58021800;
constexpr uint32_t GPIOI = 0x58022000;
constexpr uint32_t IWDG1 = 0x58004800;

constexpr uint32_t FLASH_ACR = 0x52002000;
constexpr uint32_t FLASH_ACR_LATENCY = 15u;
constexpr uint32_t FLASH_ACR_WRHIGHFREQ = 3u << 4;

constexpr uint32_t RCC_CR = 0x58024400;
constexpr uint32_t RCC_CR_HSEON = 1u << 16;
constexpr uint32_t RCC_CR_HSERDY = 1u << 17;
constexpr uint32_t RCC_CR_PLL1ON = 1u << 24;
constexpr uint32_t RCC_CR_PLL1RDY = 1u << 25;
constexpr uint32_t RCC_CFGR = 0x58024410;
constexpr uint32_t RCC_CFGR_SW = 7u << 0;
constexpr uint32_t RCC_CFGR_SW_PLL1 = 3u << 0;
constexpr uint32_t RCC_CFGR_SWS = 7u << 3;
constexpr uint32_t RCC_CFGR_SWS_PLL1 = 3u << 3;
constexpr uint32_t RCC_CDCFGR1 = 0x58024418;
constexpr uint32_t RCC_CDCFGR1_CDPPRE_DIV2 = 4u << 4;
constexpr uint32_t RCC_CDCFGR2 = 0x5802441C;
constexpr uint32_t RCC_CDCFGR2_CDPPRE1_DIV2 = 4u << 4;
constexpr uint32_t RCC_CDCFGR2_CDPPRE2_DIV2 = 4u << 8;
constexpr uint32_t RCC_SRDCFGR = 0x58024420;
constexpr uint32_t RCC_SRDCFGR_SRDPPRE_DIV2 = 4u << 4;
constexpr uint32_t RCC_PLLCKSELR = 0x58024428;
constexpr uint32_t RCC_PLLCKSELR_PLLSRC_HSI = 0u << 0;
constexpr uint32_t RCC_PLLCKSELR_PLLSRC_HSE = 2u << 0;
constexpr uint32_t RCC_PLLCFGR = 0x5802442C;
constexpr uint32_t RCC_PLLCFGR_PLL1VCOSEL = 1u << 1;  // 0: wide range, 128 to 560 MHz
constexpr uint32_t RCC_PLLCFGR_PLL1RGE = 3u << 2;
constexpr uint32_t RCC_PLLCFGR_PLL1RGE_2_4 = 1u << 2;  // reference of 2 to 4 MHz
constexpr uint32_t RCC_PLLCFGR_DIVP1EN = 1u << 16;
constexpr uint32_t RCC_PLLCFGR_DIVQ1EN = 1u << 17;
constexpr uint32_t RCC_PLL1DIVR = 0x58024430;
constexpr uint32_t RCC_CDCCIPR = 0x5802444C;
constexpr uint32_t RCC_CDCCIPR_SDMMCSEL = 1u << 16;  // 0: pll1_q_ck
constexpr uint32_t RCC_RSR = 0x58024530;
constexpr uint32_t RCC_RSR_RMVF = 1u << 16;
constexpr uint32_t RCC_RSR_BORRSTF = 1u << 21;
constexpr uint32_t RCC_RSR_PINRSTF = 1u << 22;
constexpr uint32_t RCC_RSR_PORRSTF = 1u << 23;
constexpr uint32_t RCC_RSR_SFTRSTF = 1u << 24;
constexpr uint32_t RCC_RSR_IWDGRSTF = 1u << 26;
constexpr uint32_t RCC_AHB3ENR = 0x58024534;
constexpr uint32_t RCC_AHB3ENR_SDMMC1EN = 1u << 16;
constexpr uint32_t RCC_AHB4ENR = 0x58024540;  // bit x: GPIOx
constexpr uint32_t RCC_APB2ENR = 0x58024550;
constexpr uint32_t RCC_APB2ENR_USART1EN = 1u << 4;

constexpr uint32_t PWR_CSR1 = 0x58024804;
constexpr uint32_t PWR_CSR1_ACTVOSRDY = 1u << 13;
constexpr uint32_t PWR_CR3 = 0x5802480C;
constexpr uint32_t PWR_CR3_BYPASS = 1u << 0;
constexpr uint32_t PWR_CR3_LDOEN = 1u << 1;
constexpr uint32_t PWR_CR3_SMPSEN = 1u << 2;
constexpr uint32_t PWR_CR3_SMPSEXTHP = 1u << 3;
constexpr uint32_t PWR_CR3_SMPSLEVEL = 3u << 4;
constexpr uint32_t PWR_CR3_SMPSLEVEL_1V8 = 1u << 4;
constexpr uint32_t PWR_CR3_SMPSLEVEL_2V5 = 2u << 4;
constexpr uint32_t PWR_SRDCR = 0x58024818;
constexpr uint32_t PWR_SRDCR_VOSRDY = 1u << 13;
constexpr uint32_t PWR_SRDCR_VOS = 3u << 14;  // 3: scale 0

constexpr uint32_t DBGMCU_APB4FZ1 = 0x5C001054;
constexpr uint32_t DBGMCU_APB4FZ1_IWDG1 = 1u << 18;

// The clock tree of an STM32H7A3/7B3 (RM0455 sections 4, 6 and 8).
constexpr uint32_t reset_hz = 64'000'000;  // HSI
constexpr uint32_t core_hz = 280'000'000;
constexpr uint32_t apb2_hz = core_hz / 2;
constexpr uint32_t sdmmc_hz = 560'000'000 / 12;

// 280 MHz from a crystal of even MHz, 4 to 50, or without one from the chip's own oscillator; voltage scale 0,
// 6 wait states; every APB at 140 MHz. False if supply, crystal or PLL do not start: the clock stays 64 MHz.
bool start_280_mhz(const stm32::Wiring& wiring);

constexpr stm32::Watchdog watchdog = {IWDG1, DBGMCU_APB4FZ1, DBGMCU_APB4FZ1_IWDG1};
constexpr stm32::ResetFlags reset_flags = {
    RCC_RSR, RCC_RSR_PORRSTF | RCC_RSR_BORRSTF, RCC_RSR_IWDGRSTF, RCC_RSR_SFTRSTF, RCC_RSR_PINRSTF, RCC_RSR_RMVF};

}  // namespace pmt::stm32h7
