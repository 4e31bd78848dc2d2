// The functions of common/serial.hpp for every STM32 board.
#include "common/serial.hpp"

#include "common/board.hpp"
#include "drivers/stm32/board.hpp"

namespace pmt::board {

using stm32::description;

void open_serial() {
  stm32::make_alternate(description.receive, description.usart_function, stm32::Pull::up);
  stm32::start_receiving(description.usart);
}

void read_serial(void* bytes, size_t count) {
  auto* to = static_cast<uint8_t*>(bytes);
  for (size_t done = 0; done < count;) {
    feed_watchdog();
    if (stm32::receive(description.usart, &to[done])) ++done;
  }
}

}  // namespace pmt::board
