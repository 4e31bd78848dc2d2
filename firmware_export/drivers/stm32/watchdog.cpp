#include "drivers/stm32/watchdog.hpp"

#include "drivers/io.hpp"

namespace pmt::stm32 {
namespace {

constexpr uint32_t IWDG_KR = 0x00;
constexpr uint32_t IWDG_PR = 0x04;
constexpr uint32_t IWDG_RLR = 0x08;
constexpr uint32_t IWDG_SR = 0x0C;
constexpr uint32_t key_start = 0xCCCC;
constexpr uint32_t key_access = 0x5555;
constexpr uint32_t key_feed = 0xAAAA;
constexpr uint32_t divide_by_256 = 6;
constexpr uint32_t longest = 0xFFF;  // 4096 * 256 / 32 kHz
constexpr uint32_t busy = 3;         // PVU, RVU

}  // namespace

void start_watchdog(uint32_t base) {
  io::write(base + IWDG_KR, key_start);
  io::write(base + IWDG_KR, key_access);
  io::write(base + IWDG_PR, divide_by_256);
  io::write(base + IWDG_RLR, longest);
  io::wait_for(base + IWDG_SR, busy, 0, 10'000'000);
  io::write(base + IWDG_KR, key_feed);
}

void feed_watchdog(uint32_t base) { io::write(base + IWDG_KR, key_feed); }

}  // namespace pmt::stm32
