#pragma once

#include <zephyr/device.h>

#include <cstdint>

using uart_irq_callback_user_data_t = void (*)(const device* dev, void* user_data);
int uart_irq_callback_user_data_set(const device* dev, uart_irq_callback_user_data_t callback, void* user_data);
void uart_irq_rx_enable(const device* dev);
int uart_irq_update(const device* dev);
int uart_irq_rx_ready(const device* dev);
int uart_fifo_read(const device* dev, uint8_t* data, int size);
void uart_poll_out(const device* dev, unsigned char character);
