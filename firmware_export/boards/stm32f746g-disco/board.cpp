// 32F746GDISCOVERY: pins from UM1907.
#include "drivers/stm32/board.hpp"

#include "drivers/io.hpp"
#include "drivers/stm32f7/chip.hpp"
#include "model/wiring.hpp"

namespace pmt::stm32 {
namespace {

using namespace stm32f7;

bool start_clocks() {
  const bool started = start_216_mhz(exported::wiring.crystal_hz);
  constexpr uint32_t ports_a_b_c_d_i = 1u << 0 | 1u << 1 | 1u << 2 | 1u << 3 | 1u << 8;
  io::set_bits(RCC_AHB1ENR, ports_a_b_c_d_i);
  io::set_bits(RCC_APB2ENR, RCC_APB2ENR_USART1EN | RCC_APB2ENR_SDMMC1EN);
  io::read(RCC_APB2ENR);  // the clock runs two cycles after the write
  return started;
}

}  // namespace

extern const Description description = {
    "STM32F746G-DISCO",
    start_clocks,
    core_hz,
    stm32f7::reset_hz,
    USART1,
    apb2_hz,
    {GPIOA, 9},  // VCP_TX
    {GPIOB, 7},  // VCP_RX
    7,
    {GPIOI, 1},  // LD1, green
    watchdog,
    reset_flags,
    {SDMMC1, sdmmc_hz, SdmmcGeneration::f7},
    {{GPIOC, 12}, {GPIOD, 2}, {GPIOC, 8}, {GPIOC, 9}, {GPIOC, 10}, {GPIOC, 11}},
    12,
    {GPIOC, 13, Active::low},  // uSD_Detect
};

}  // namespace pmt::stm32
