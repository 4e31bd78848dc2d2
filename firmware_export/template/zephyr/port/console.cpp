// The log of a training goes to Zephyr's console.
#include <zephyr/sys/printk.h>

#include "common/board.hpp"

void pmt::board::print(const char* text) { printk("%s", text); }
