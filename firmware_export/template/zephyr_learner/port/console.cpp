// The learner's line on Zephyr, common/serial.hpp and print(): the UART chosen as `pmt,uart`, else that of the console.
#include <zephyr/device.h>
#include <zephyr/drivers/uart.h>
#include <zephyr/kernel.h>
#include <zephyr/sys/printk.h>

#include "common/board.hpp"
#include "common/serial.hpp"

namespace pmt::board {
namespace {

#if DT_HAS_CHOSEN(pmt_uart)
const device* const uart = DEVICE_DT_GET(DT_CHOSEN(pmt_uart));
#else
const device* const uart = DEVICE_DT_GET(DT_CHOSEN(zephyr_console));
#endif

// Bytes that come while threads of a higher priority run: 89 ms at 115200 baud. One that finds no room is lost.
char received[1024];
k_msgq queue;
// Whether the host has sent nothing since it was written to, so that it is waited for without a limit.
bool is_idle = true;

void receive(const device* from, void*) {
  (void)uart_irq_update(from);
  if (uart_irq_rx_ready(from) <= 0) return;
  for (uint8_t byte = 0; uart_fifo_read(from, &byte, 1) == 1;) (void)k_msgq_put(&queue, &byte, K_NO_WAIT);
}

}  // namespace

void open_serial() {
  k_msgq_init(&queue, received, 1, sizeof received);
  if (!device_is_ready(uart) || uart_irq_callback_user_data_set(uart, receive, nullptr) != 0) {
    printk("error: the learner's UART is not ready, or its driver has no interrupts\n");
    exit(1);
  }
  uart_irq_rx_enable(uart);
}

void print(const char* text) {
  is_idle = true;
  for (; *text != 0; ++text) uart_poll_out(uart, static_cast<uint8_t>(*text));
}

// Where nothing comes for a second amid a request, a byte was lost. Zeros stand in for the rest, so that its checksum
// is wrong and the next request is understood again.
void read_serial(void* bytes, size_t count) {
  auto* to = static_cast<uint8_t*>(bytes);
  bool is_cut = false;
  for (size_t i = 0; i < count; ++i) {
    is_cut = is_cut || k_msgq_get(&queue, &to[i], is_idle ? K_FOREVER : K_MSEC(1000)) != 0;
    if (is_cut) to[i] = 0;
    is_idle = false;
  }
}

}  // namespace pmt::board
