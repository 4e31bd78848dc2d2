// A tree with an SD card's disk of its own name and, where the compiler is told so, a chosen UART.
#pragma once

#define DT_HAS_COMPAT_STATUS_OKAY(compatible) HAS_##compatible
#define HAS_zephyr_sdmmc_disk 1
#define HAS_st_stm32_sdmmc 0
#define DT_COMPAT_GET_ANY_STATUS_OKAY(compatible) compatible
#define DT_PROP_OR(node, property, otherwise) "SD2"

#ifndef HAS_CHOSEN_pmt_uart
#define HAS_CHOSEN_pmt_uart 0
#endif
#define DT_HAS_CHOSEN(name) HAS_CHOSEN_##name
#define DT_CHOSEN(name) name
