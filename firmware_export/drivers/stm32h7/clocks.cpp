#include "drivers/io.hpp"
#include "drivers/stm32h7/chip.hpp"

namespace pmt::stm32h7 {
namespace {

constexpr uint32_t most_polls = 4'000'000;  // reads of a flag: at 64 MHz more than 100 ms
constexpr uint32_t multiplier = 280;        // of 2 MHz
constexpr uint32_t core_divider = 2;
constexpr uint32_t sdmmc_divider = 12;
constexpr uint32_t wait_states = 6;

bool wait_for(uint32_t address, uint32_t flag) { return io::wait_for(address, flag, flag, most_polls); }

uint32_t supply_bits(stm32::Supply supply) {
  switch (supply) {
    case stm32::Supply::ldo: return PWR_CR3_LDOEN;
    case stm32::Supply::smps: return PWR_CR3_SMPSEN;
    case stm32::Supply::smps_1v8_ldo: return PWR_CR3_SMPSLEVEL_1V8 | PWR_CR3_SMPSEN | PWR_CR3_LDOEN;
    default: return PWR_CR3_SMPSLEVEL_2V5 | PWR_CR3_SMPSEN | PWR_CR3_LDOEN;
  }
}

// PWR_CR3 takes one write after a power-on; what is written must fit the board's wiring, or the core loses its
// supply.
bool raise_supply(stm32::Supply wired) {
  constexpr uint32_t supply = PWR_CR3_BYPASS | PWR_CR3_LDOEN | PWR_CR3_SMPSEN | PWR_CR3_SMPSEXTHP | PWR_CR3_SMPSLEVEL;
  io::replace_bits(PWR_CR3, supply, supply_bits(wired));
  if (!wait_for(PWR_CSR1, PWR_CSR1_ACTVOSRDY)) return false;
  io::set_bits(PWR_SRDCR, PWR_SRDCR_VOS);
  return wait_for(PWR_SRDCR, PWR_SRDCR_VOSRDY);
}

bool start_pll(uint32_t crystal_hz) {
  const uint32_t source = crystal_hz != 0 ? RCC_PLLCKSELR_PLLSRC_HSE : RCC_PLLCKSELR_PLLSRC_HSI;
  io::write(RCC_PLLCKSELR, source | (crystal_hz != 0 ? crystal_hz : reset_hz) / 2'000'000 << 4);
  io::replace_bits(RCC_PLLCFGR, RCC_PLLCFGR_PLL1VCOSEL | RCC_PLLCFGR_PLL1RGE,
                   RCC_PLLCFGR_PLL1RGE_2_4 | RCC_PLLCFGR_DIVP1EN | RCC_PLLCFGR_DIVQ1EN);
  // After a reset pll1_r_ck is on, and it must not be faster than the core: it is divided though unused.
  io::write(RCC_PLL1DIVR,
            (multiplier - 1) | (core_divider - 1) << 9 | (sdmmc_divider - 1) << 16 | (core_divider - 1) << 24);
  io::set_bits(RCC_CR, RCC_CR_PLL1ON);
  return wait_for(RCC_CR, RCC_CR_PLL1RDY);
}

}  // namespace

bool start_280_mhz(const stm32::Wiring& wiring) {
  if (!raise_supply(wiring.supply)) return false;
  const bool crystal = wiring.crystal_hz != 0;
  if (crystal) io::set_bits(RCC_CR, RCC_CR_HSEON);
  if (crystal && !wait_for(RCC_CR, RCC_CR_HSERDY)) return false;
  if (!start_pll(wiring.crystal_hz)) return false;

  constexpr uint32_t latency = wait_states | FLASH_ACR_WRHIGHFREQ;
  io::write(FLASH_ACR, latency);
  if (!io::wait_for(FLASH_ACR, FLASH_ACR_LATENCY | FLASH_ACR_WRHIGHFREQ, latency, most_polls)) return false;
  io::write(RCC_CDCFGR1, RCC_CDCFGR1_CDPPRE_DIV2);
  io::write(RCC_CDCFGR2, RCC_CDCFGR2_CDPPRE1_DIV2 | RCC_CDCFGR2_CDPPRE2_DIV2);
  io::write(RCC_SRDCFGR, RCC_SRDCFGR_SRDPPRE_DIV2);
  io::replace_bits(RCC_CDCCIPR, RCC_CDCCIPR_SDMMCSEL, 0);
  io::replace_bits(RCC_CFGR, RCC_CFGR_SW, RCC_CFGR_SW_PLL1);
  return io::wait_for(RCC_CFGR, RCC_CFGR_SWS, RCC_CFGR_SWS_PLL1, most_polls);
}

}  // namespace pmt::stm32h7
