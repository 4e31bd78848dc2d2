// The board's UART0, a CMSDK APB UART (Arm DDI 0479C, section 4.3).
#include "common/serial.hpp"

namespace pmt::board {
namespace {

struct Uart {
  uint32_t data, state, control, interrupt, divider;
};
constexpr uintptr_t uart0 = 0x40004000;
constexpr uint32_t receives = 1u << 1;     // of control
constexpr uint32_t buffer_full = 1u << 1;  // of state: received
constexpr uint32_t least_divider = 16;

volatile Uart& uart() { return *reinterpret_cast<volatile Uart*>(uart0); }

}  // namespace

void open_serial() {
  uart().divider = least_divider;
  uart().control = receives;
}

uint8_t read_serial() {
  while ((uart().state & buffer_full) == 0) {
  }
  return static_cast<uint8_t>(uart().data);
}

}  // namespace pmt::board
