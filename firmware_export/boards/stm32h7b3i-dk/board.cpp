// STM32H7B3I-DK: pins from UM2569; the LED as ST's stm32h7b3i_discovery.c drives it.
#include "drivers/stm32/board.hpp"

#include "drivers/io.hpp"
#include "drivers/stm32h7/chip.hpp"
#include "model/wiring.hpp"

namespace pmt::stm32 {
namespace {

using namespace stm32h7;

bool start_clocks() {
  const bool started = start_280_mhz(exported::wiring);
  constexpr uint32_t ports_a_c_d_g_i = 1u << 0 | 1u << 2 | 1u << 3 | 1u << 6 | 1u << 8;
  io::set_bits(RCC_AHB4ENR, ports_a_c_d_g_i);
  io::set_bits(RCC_AHB3ENR, RCC_AHB3ENR_SDMMC1EN);
  io::set_bits(RCC_APB2ENR, RCC_APB2ENR_USART1EN);
  io::read(RCC_APB2ENR);  // the clock runs two cycles after the write
  return started;
}

}  // namespace

extern const Description description = {
    "STM32H7B3I-DK",
    start_clocks,
    core_hz,
    stm32h7::reset_hz,
    USART1,
    apb2_hz,
    {GPIOA, 9},   // VCP_TX
    {GPIOA, 10},  // VCP_RX
    7,
    {GPIOG, 11, Active::low},  // LD1, red
    watchdog,
    reset_flags,
    {SDMMC1, sdmmc_hz, SdmmcGeneration::h7},
    {{GPIOC, 12}, {GPIOD, 2}, {GPIOC, 8}, {GPIOC, 9}, {GPIOC, 10}, {GPIOC, 11}},
    12,
    {GPIOI, 8, Active::low},  // uSD_Detect
};

}  // namespace pmt::stm32
