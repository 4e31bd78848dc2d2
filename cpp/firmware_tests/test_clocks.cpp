// The clock trees: what is written, in which order, and what happens where an oscillator does not start.
#include <doctest/doctest.h>

#include "chip_models.hpp"
#include "drivers/stm32f7/chip.hpp"
#include "drivers/stm32h7/chip.hpp"

using pmt::stm32::Supply;
using pmt::test::F7;
using pmt::test::H7;

TEST_CASE("STM32F746: 25 MHz / 25 * 432 / 2 = 216 MHz, 7 wait states before the switch") {
  using namespace pmt::stm32f7;
  F7 f7;
  REQUIRE(start_216_mhz(25'000'000));
  const uint32_t pll = f7.chip.at(RCC_PLLCFGR);
  CHECK((pll & 0x3F) == 25);
  CHECK((pll >> 6 & 0x1FF) == 432);
  CHECK((pll >> 16 & 3) == 0);
  CHECK((pll >> 24 & 15) == 9);  // 48 MHz for the card
  CHECK((pll & 1u << 22) != 0);
  CHECK((pll & 0xF0BC8000u) == 0x20000000u);  // reserved bits as they were
  CHECK(f7.chip.at(FLASH_ACR) == 0x307);
  CHECK(f7.chip.at(RCC_CFGR) == 0x9402);  // APB1 / 4, APB2 / 2, PLL
  CHECK(f7.chip.at(PWR_CR1) == 0x3C000);
  CHECK(f7.chip.first_write(FLASH_ACR) < f7.chip.first_write(RCC_CFGR));
  CHECK(f7.chip.first_write(PWR_CR1) < f7.chip.first_write(FLASH_ACR));
}

TEST_CASE("STM32F746: without crystal, PLL or overdrive the clock stays as it was") {
  using namespace pmt::stm32f7;
  for (size_t missing = 0; missing < 4; ++missing) {
    F7 f7;
    f7.chip.reactions.erase(f7.chip.reactions.begin() + static_cast<int>(missing));
    CHECK_FALSE(start_216_mhz(25'000'000));
    CHECK((f7.chip.at(RCC_CFGR) & RCC_CFGR_SW) == 0);
  }
}

TEST_CASE("STM32H7B3: 24 MHz / 12 * 280 / 2 = 280 MHz, from the step-down converter at scale 0") {
  using namespace pmt::stm32h7;
  H7 h7;
  REQUIRE(start_280_mhz({Supply::smps, 24'000'000}));
  CHECK(h7.chip.at(PWR_CR3) == 0x4);
  CHECK(h7.chip.at(PWR_SRDCR) == 0xC000);
  CHECK(h7.chip.at(RCC_PLLCKSELR) == (12 << 4 | 2));
  CHECK(h7.chip.at(RCC_PLLCFGR) == 0x01FF0004);
  CHECK(h7.chip.at(RCC_PLL1DIVR) == (279 | 1 << 9 | 11 << 16 | 1 << 24));  // P, Q, R: 2, 12, 2
  CHECK(h7.chip.at(FLASH_ACR) == 0x36);
  CHECK(h7.chip.at(RCC_CDCFGR1) == 0x40);
  CHECK(h7.chip.at(RCC_CDCFGR2) == 0x440);
  CHECK(h7.chip.at(RCC_SRDCFGR) == 0x40);
  CHECK(h7.chip.at(RCC_CFGR) == 3);
  CHECK(h7.chip.first_write(PWR_SRDCR) < h7.chip.first_write(RCC_CR));
  CHECK(h7.chip.first_write(FLASH_ACR) < h7.chip.first_write(RCC_CFGR));
  CHECK(h7.chip.first_write(RCC_SRDCFGR) < h7.chip.first_write(RCC_CFGR));
  CHECK(sdmmc_hz == 46666666);
}

TEST_CASE("STM32H7B3: without supply, crystal or PLL the clock stays as it was") {
  using namespace pmt::stm32h7;
  for (size_t missing = 0; missing < 4; ++missing) {
    H7 h7;
    h7.chip.reactions.erase(h7.chip.reactions.begin() + static_cast<int>(missing));
    CHECK_FALSE(start_280_mhz({Supply::smps, 24'000'000}));
    CHECK((h7.chip.at(RCC_CFGR) & RCC_CFGR_SW) == 0);
  }
}

TEST_CASE("STM32F746: without a crystal its own 16 MHz make 216") {
  using namespace pmt::stm32f7;
  F7 f7;
  REQUIRE(start_216_mhz(0));
  CHECK((f7.chip.at(RCC_CR) & RCC_CR_HSEON) == 0);
  CHECK((f7.chip.at(RCC_PLLCFGR) & 0x3F) == 16);
  CHECK((f7.chip.at(RCC_PLLCFGR) >> 6 & 0x1FF) == 432);
  CHECK((f7.chip.at(RCC_PLLCFGR) & 1u << 22) == 0);
}

TEST_CASE("STM32H7B3: without a crystal its own 64 MHz make 280") {
  using namespace pmt::stm32h7;
  H7 h7;
  REQUIRE(start_280_mhz({Supply::smps, 0}));
  CHECK((h7.chip.at(RCC_CR) & RCC_CR_HSEON) == 0);
  CHECK(h7.chip.at(RCC_PLLCKSELR) == (32 << 4 | 0));
}

TEST_CASE("STM32H7B3: the supply is the one that the board has") {
  using namespace pmt::stm32h7;
  const struct {
    Supply supply;
    uint32_t bits;
  } supplies[] = {
      {Supply::ldo, 0x02}, {Supply::smps, 0x04}, {Supply::smps_1v8_ldo, 0x16}, {Supply::smps_2v5_ldo, 0x26}};
  for (const auto& [supply, bits] : supplies) {
    H7 h7;
    REQUIRE(start_280_mhz({supply, 24'000'000}));
    CHECK(h7.chip.at(PWR_CR3) == bits);
  }
}
