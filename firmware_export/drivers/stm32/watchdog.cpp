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
constexpr uint32_t counts_per_second = 125;  // 32 kHz / 256
constexpr uint32_t busy = 3;                 // PVU, RVU
constexpr uint32_t most_polls = 2'000'000;   // reads: 0.1 s and more

}  // namespace

void start_watchdog(const Watchdog& watchdog, uint32_t seconds) {
  static_assert(longest_seconds * counts_per_second <= 0x1000, "the counter has 12 bits");
  io::set_bits(watchdog.freeze, watchdog.freeze_bit);
  io::write(watchdog.base + IWDG_KR, key_start);
  io::write(watchdog.base + IWDG_KR, key_access);
  io::write(watchdog.base + IWDG_PR, divide_by_256);
  io::write(watchdog.base + IWDG_RLR, seconds * counts_per_second - 1);
  io::wait_for(watchdog.base + IWDG_SR, busy, 0, most_polls);
  feed_watchdog(watchdog);
}

void feed_watchdog(const Watchdog& watchdog) { io::write(watchdog.base + IWDG_KR, key_feed); }

}  // namespace pmt::stm32
