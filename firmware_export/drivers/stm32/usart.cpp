#include "drivers/stm32/usart.hpp"

#include "drivers/io.hpp"

namespace pmt::stm32 {
namespace {

constexpr uint32_t USART_CR1 = 0x00;
constexpr uint32_t USART_CR2 = 0x04;
constexpr uint32_t USART_CR3 = 0x08;
constexpr uint32_t USART_BRR = 0x0C;
constexpr uint32_t USART_ISR = 0x1C;
constexpr uint32_t USART_TDR = 0x28;
constexpr uint32_t USART_CR1_UE = 1u << 0;
constexpr uint32_t USART_CR1_TE = 1u << 3;
constexpr uint32_t USART_ISR_TC = 1u << 6;
constexpr uint32_t USART_ISR_TXE = 1u << 7;
constexpr uint32_t USART_CR1_sends = USART_CR1_UE | USART_CR1_TE;
constexpr uint32_t most_polls = 200'000;  // reads: several milliseconds; a character takes 87 us

bool is_open(uint32_t base) { return (io::read(base + USART_CR1) & USART_CR1_sends) == USART_CR1_sends; }

bool put(uint32_t base, char character) {
  if (!io::wait_for(base + USART_ISR, USART_ISR_TXE, USART_ISR_TXE, most_polls)) return false;
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
  if (is_open(base)) io::wait_for(base + USART_ISR, USART_ISR_TC, USART_ISR_TC, most_polls);
}

}  // namespace pmt::stm32
