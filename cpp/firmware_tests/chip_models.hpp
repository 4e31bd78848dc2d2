// The clock trees of the two chips, as after a reset.
#pragma once

#include "drivers/stm32f7/chip.hpp"
#include "drivers/stm32h7/chip.hpp"
#include "register_model.hpp"

namespace pmt::test {

struct F7 {
  F7() {
    using namespace pmt::stm32f7;
    chip.at(RCC_PLLCFGR) = 0x24003010;  // after a reset
    chip.at(PWR_CR1) = 0xC000;
    chip.reactions = {{RCC_CR, RCC_CR_HSEON, RCC_CR, RCC_CR_HSERDY},
                      {RCC_CR, RCC_CR_PLLON, RCC_CR, RCC_CR_PLLRDY},
                      {PWR_CR1, PWR_CR1_ODEN, PWR_CSR1, PWR_CSR1_ODRDY},
                      {PWR_CR1, PWR_CR1_ODSWEN, PWR_CSR1, PWR_CSR1_ODSWRDY},
                      {RCC_CFGR, RCC_CFGR_SW_PLL, RCC_CFGR, RCC_CFGR_SWS_PLL}};
    bus.attach(0x40000000, 0x100000, &chip);
  }
  SimulatedBus bus;
  RegisterModel chip{0x40000000};
};

struct H7 {
  H7() {
    using namespace pmt::stm32h7;
    chip.at(PWR_CR3) = 0x6;  // after a reset
    chip.at(RCC_PLLCFGR) = 0x01FF0000;
    chip.at(RCC_PLLCKSELR) = 0x02020200;
    chip.at(RCC_PLL1DIVR) = 0x01010280;
    chip.at(FLASH_ACR) = 0x13;
    chip.reactions = {{PWR_CR3, 0, PWR_CSR1, PWR_CSR1_ACTVOSRDY},
                      {PWR_SRDCR, PWR_SRDCR_VOS, PWR_SRDCR, PWR_SRDCR_VOSRDY},
                      {RCC_CR, RCC_CR_HSEON, RCC_CR, RCC_CR_HSERDY},
                      {RCC_CR, RCC_CR_PLL1ON, RCC_CR, RCC_CR_PLL1RDY},
                      {RCC_CFGR, RCC_CFGR_SW_PLL1, RCC_CFGR, RCC_CFGR_SWS_PLL1}};
    bus.attach(0x50000000, 0x10000000, &chip);
  }
  SimulatedBus bus;
  RegisterModel chip{0x50000000};
};

}  // namespace pmt::test
