#include "drivers/stm32/peripherals.hpp"

#include "drivers/io.hpp"

namespace pmt::stm32 {
namespace {

constexpr uint32_t GPIO_MODER = 0x00;
constexpr uint32_t GPIO_OSPEEDR = 0x08;
constexpr uint32_t GPIO_PUPDR = 0x0C;
constexpr uint32_t GPIO_IDR = 0x10;
constexpr uint32_t GPIO_BSRR = 0x18;
constexpr uint32_t GPIO_AFRL = 0x20;
constexpr uint32_t input = 0, output = 1, alternate = 2;
constexpr uint32_t low_speed = 0, very_high_speed = 3;

void two_bits(const Pin& pin, uint32_t offset, uint32_t value) {
  io::replace_bits(pin.port + offset, 3u << 2 * pin.number, value << 2 * pin.number);
}

}  // namespace

void make_input(const Pin& pin, Pull pull) {
  two_bits(pin, GPIO_PUPDR, static_cast<uint32_t>(pull));
  two_bits(pin, GPIO_MODER, input);
}

void make_output(const Pin& pin) {
  set(pin, false);
  two_bits(pin, GPIO_OSPEEDR, low_speed);
  two_bits(pin, GPIO_MODER, output);
}

void make_alternate(const Pin& pin, uint32_t function, Pull pull) {
  const uint32_t shift = 4 * (pin.number % 8);
  io::replace_bits(pin.port + GPIO_AFRL + 4 * (pin.number / 8), 15u << shift, function << shift);
  two_bits(pin, GPIO_OSPEEDR, very_high_speed);
  two_bits(pin, GPIO_PUPDR, static_cast<uint32_t>(pull));
  two_bits(pin, GPIO_MODER, alternate);
}

bool is_on(const Pin& pin) {
  const bool high = (io::read(pin.port + GPIO_IDR) >> pin.number & 1) != 0;
  return high == (pin.active == Active::high);
}

void set(const Pin& pin, bool on) {
  const bool high = on == (pin.active == Active::high);
  io::write(pin.port + GPIO_BSRR, 1u << (pin.number + (high ? 0 : 16)));
}

namespace {

constexpr uint32_t USART_CR1 = 0x00;
constexpr uint32_t USART_CR2 = 0x04;
constexpr uint32_t USART_CR3 = 0x08;
constexpr uint32_t USART_BRR = 0x0C;
constexpr uint32_t USART_ISR = 0x1C;
constexpr uint32_t USART_ICR = 0x20;
constexpr uint32_t USART_RDR = 0x24;
constexpr uint32_t USART_TDR = 0x28;
constexpr uint32_t USART_CR1_UE = 1u << 0;
constexpr uint32_t USART_CR1_RE = 1u << 2;
constexpr uint32_t USART_CR1_TE = 1u << 3;
constexpr uint32_t USART_ISR_ORE = 1u << 3;
constexpr uint32_t USART_ISR_RXNE = 1u << 5;
constexpr uint32_t USART_ISR_TC = 1u << 6;
constexpr uint32_t USART_ISR_TXE = 1u << 7;
constexpr uint32_t USART_CR1_sends = USART_CR1_UE | USART_CR1_TE;
constexpr uint32_t usart_polls = 200'000;  // reads: several milliseconds; a character takes 87 us

bool is_open(uint32_t base) { return (io::read(base + USART_CR1) & USART_CR1_sends) == USART_CR1_sends; }

bool put(uint32_t base, char character) {
  if (!io::wait_for(base + USART_ISR, USART_ISR_TXE, USART_ISR_TXE, usart_polls)) return false;
  io::write(base + USART_TDR, static_cast<uint8_t>(character));
  return true;
}

}  // namespace

void open_usart(uint32_t base, uint32_t kernel_hz, uint32_t baud) {
  io::write(base + USART_CR1, 0);
  io::write(base + USART_CR2, 0);
  io::write(base + USART_CR3, 0);
  io::write(base + USART_BRR, (kernel_hz + baud / 2) / baud);
  io::write(base + USART_CR1, USART_CR1_sends);
}

void send(uint32_t base, const char* text) {
  if (!is_open(base)) return;
  for (; *text != 0; ++text) {
    if (*text == '\n' && !put(base, '\r')) return;
    if (!put(base, *text)) return;
  }
}

void flush_usart(uint32_t base) {
  if (is_open(base)) io::wait_for(base + USART_ISR, USART_ISR_TC, USART_ISR_TC, usart_polls);
}

void start_receiving(uint32_t base) { io::set_bits(base + USART_CR1, USART_CR1_RE); }

bool receive(uint32_t base, uint8_t* byte) {
  const uint32_t state = io::read(base + USART_ISR);
  if ((state & USART_ISR_ORE) != 0) io::write(base + USART_ICR, USART_ISR_ORE);  // else nothing comes any more
  if ((state & USART_ISR_RXNE) == 0) return false;
  *byte = static_cast<uint8_t>(io::read(base + USART_RDR));
  return true;
}

namespace {

constexpr uint32_t IWDG_KR = 0x00;
constexpr uint32_t IWDG_PR = 0x04;
constexpr uint32_t IWDG_RLR = 0x08;
constexpr uint32_t IWDG_SR = 0x0C;
constexpr uint32_t key_start = 0xCCCC;
constexpr uint32_t key_access = 0x5555;
constexpr uint32_t key_feed = 0xAAAA;
constexpr uint32_t divide_by_256 = 6;
constexpr uint32_t counts_per_second = 125;     // 32 kHz / 256
constexpr uint32_t busy = 3;                    // PVU, RVU
constexpr uint32_t watchdog_polls = 2'000'000;  // reads: 0.1 s and more

}  // namespace

void start_watchdog(const Watchdog& watchdog, uint32_t seconds) {
  static_assert(longest_seconds * counts_per_second <= 0x1000, "the counter has 12 bits");
  io::set_bits(watchdog.freeze, watchdog.freeze_bit);
  io::write(watchdog.base + IWDG_KR, key_start);
  io::write(watchdog.base + IWDG_KR, key_access);
  io::write(watchdog.base + IWDG_PR, divide_by_256);
  io::write(watchdog.base + IWDG_RLR, seconds * counts_per_second - 1);
  io::wait_for(watchdog.base + IWDG_SR, busy, 0, watchdog_polls);
  feed_watchdog(watchdog);
}

void feed_watchdog(const Watchdog& watchdog) { io::write(watchdog.base + IWDG_KR, key_feed); }

// Every reset pulls the pin low: its flag says something where no other is set.
ResetCause take_reset_cause(const ResetFlags& flags) {
  const uint32_t set = io::read(flags.address);
  io::set_bits(flags.address, flags.clear);
  if ((set & flags.power) != 0) return ResetCause::power;
  if ((set & flags.watchdog) != 0) return ResetCause::watchdog;
  if ((set & flags.software) != 0) return ResetCause::software;
  return (set & flags.pin) != 0 ? ResetCause::pin : ResetCause::other;
}

const char* name_of(ResetCause cause) {
  switch (cause) {
    case ResetCause::power: return "power-on";
    case ResetCause::watchdog: return "the watchdog";
    case ResetCause::software: return "software";
    case ResetCause::pin: return "the reset pin";
    default: return "something else";
  }
}

}  // namespace pmt::stm32
