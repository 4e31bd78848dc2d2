// The SDMMC peripheral, named as in RM0385 (STM32F7) and RM0455 (STM32H7).
#pragma once

#include <cstdint>

namespace pmt::stm32 {

constexpr uint32_t SDMMC_POWER = 0x00;
constexpr uint32_t SDMMC_CLKCR = 0x04;
constexpr uint32_t SDMMC_ARG = 0x08;
constexpr uint32_t SDMMC_CMD = 0x0C;
constexpr uint32_t SDMMC_RESPCMD = 0x10;
constexpr uint32_t SDMMC_RESP1 = 0x14;
constexpr uint32_t SDMMC_DTIMER = 0x24;
constexpr uint32_t SDMMC_DLEN = 0x28;
constexpr uint32_t SDMMC_DCTRL = 0x2C;
constexpr uint32_t SDMMC_STA = 0x34;
constexpr uint32_t SDMMC_ICR = 0x38;
constexpr uint32_t SDMMC_MASK = 0x3C;
constexpr uint32_t SDMMC_FIFO = 0x80;

constexpr uint32_t SDMMC_POWER_ON = 3;

// SDMMC_CLKCR of the two generations.
constexpr uint32_t F7_CLKCR_CLKEN = 1u << 8;
constexpr uint32_t F7_CLKCR_WIDBUS_4 = 1u << 11;
constexpr uint32_t H7_CLKCR_WIDBUS_4 = 1u << 14;

// SDMMC_CMD of the two generations.
constexpr uint32_t F7_CMD_CPSMEN = 1u << 10;
constexpr uint32_t F7_CMD_WAITRESP_SHORT = 1u << 6;
constexpr uint32_t F7_CMD_WAITRESP_LONG = 3u << 6;
constexpr uint32_t H7_CMD_CMDTRANS = 1u << 6;
constexpr uint32_t H7_CMD_CMDSTOP = 1u << 7;
constexpr uint32_t H7_CMD_CPSMEN = 1u << 12;
constexpr uint32_t H7_CMD_WAITRESP_SHORT = 1u << 8;
constexpr uint32_t H7_CMD_WAITRESP_SHORT_NO_CRC = 2u << 8;
constexpr uint32_t H7_CMD_WAITRESP_LONG = 3u << 8;

constexpr uint32_t SDMMC_DCTRL_DTEN = 1u << 0;
constexpr uint32_t SDMMC_DCTRL_DTDIR_FROM_CARD = 1u << 1;
constexpr uint32_t SDMMC_DCTRL_DBLOCKSIZE_512 = 9u << 4;
constexpr uint32_t H7_DCTRL_FIFORST = 1u << 13;

constexpr uint32_t SDMMC_STA_CCRCFAIL = 1u << 0;
constexpr uint32_t SDMMC_STA_DCRCFAIL = 1u << 1;
constexpr uint32_t SDMMC_STA_CTIMEOUT = 1u << 2;
constexpr uint32_t SDMMC_STA_DTIMEOUT = 1u << 3;
constexpr uint32_t SDMMC_STA_TXUNDERR = 1u << 4;
constexpr uint32_t SDMMC_STA_RXOVERR = 1u << 5;
constexpr uint32_t SDMMC_STA_CMDREND = 1u << 6;
constexpr uint32_t SDMMC_STA_CMDSENT = 1u << 7;
constexpr uint32_t SDMMC_STA_DATAEND = 1u << 8;
constexpr uint32_t SDMMC_STA_TXFIFOHE = 1u << 14;  // room for 8 words and more
constexpr uint32_t SDMMC_STA_RXFIFOHF = 1u << 15;  // 8 words and more

// Every flag that stays until it is cleared; the other bits are reserved.
constexpr uint32_t F7_ICR_ALL = 0x004005FF;
constexpr uint32_t H7_ICR_ALL = 0x1FE00FFF;

}  // namespace pmt::stm32
