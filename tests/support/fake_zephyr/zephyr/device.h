#pragma once

#include <zephyr/devicetree.h>

struct device {
  const char* name;
};
extern const device device_zephyr_console, device_pmt_uart;
#define DEVICE_DT_GET(node) DEVICE_OF(node)
#define DEVICE_OF(node) (&device_##node)
bool device_is_ready(const device* dev);
