#include "drivers/io.hpp"
#include "drivers/stm32f7/chip.hpp"

namespace pmt::stm32f7 {
namespace {

constexpr uint32_t most_polls = 1'000'000;  // reads of a flag: at 16 MHz more than 100 ms
constexpr uint32_t multiplier = 432;        // of 1 MHz; the VCO's limit is 432 MHz
constexpr uint32_t sdmmc_divider = 9;
constexpr uint32_t wait_states = 7;

bool wait_for(uint32_t address, uint32_t flag) { return io::wait_for(address, flag, flag, most_polls); }

}  // namespace

// The order is that of RM0385, 4.1.4: overdrive is entered while the PLL runs and is not yet used.
bool start_216_mhz(uint32_t crystal_hz) {
  const bool crystal = crystal_hz != 0;
  io::set_bits(RCC_APB1ENR, RCC_APB1ENR_PWREN);
  if (crystal) io::set_bits(RCC_CR, RCC_CR_HSEON);
  if (crystal && !wait_for(RCC_CR, RCC_CR_HSERDY)) return false;

  io::set_bits(PWR_CR1, PWR_CR1_VOS);
  // PLLP = 0 divides by 2.
  io::replace_bits(RCC_PLLCFGR, RCC_PLLCFGR_fields,
                   (crystal ? crystal_hz : reset_hz) / 1'000'000 | multiplier << 6 |
                       (crystal ? RCC_PLLCFGR_PLLSRC_HSE : 0) | sdmmc_divider << 24);
  io::set_bits(RCC_CR, RCC_CR_PLLON);
  io::set_bits(PWR_CR1, PWR_CR1_ODEN);
  if (!wait_for(PWR_CSR1, PWR_CSR1_ODRDY)) return false;
  io::set_bits(PWR_CR1, PWR_CR1_ODSWEN);
  if (!wait_for(PWR_CSR1, PWR_CSR1_ODSWRDY)) return false;

  io::write(FLASH_ACR, wait_states | FLASH_ACR_PRFTEN | FLASH_ACR_ARTEN);
  if (!io::wait_for(FLASH_ACR, FLASH_ACR_LATENCY, wait_states, most_polls)) return false;
  io::replace_bits(RCC_CFGR, RCC_CFGR_HPRE | RCC_CFGR_PPRE1 | RCC_CFGR_PPRE2,
                   RCC_CFGR_PPRE1_DIV4 | RCC_CFGR_PPRE2_DIV2);
  if (!wait_for(RCC_CR, RCC_CR_PLLRDY)) return false;
  io::replace_bits(RCC_CFGR, RCC_CFGR_SW, RCC_CFGR_SW_PLL);
  return io::wait_for(RCC_CFGR, RCC_CFGR_SWS, RCC_CFGR_SWS_PLL, most_polls);
}

}  // namespace pmt::stm32f7
