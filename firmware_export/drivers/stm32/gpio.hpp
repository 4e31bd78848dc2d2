// Pins of an STM32 (RM0385 section 6, RM0455 section 11: the same registers).
#pragma once

#include <cstdint>

namespace pmt::stm32 {

enum class Active { high, low };

struct Pin {
  uint32_t port;  // base address of GPIOx
  uint32_t number;
  Active active = Active::high;  // the level at which what hangs on it is on
};

enum class Pull : uint32_t { none = 0, up = 1, down = 2 };

// The port's clock must be on.
void make_input(const Pin& pin, Pull pull);
void make_output(const Pin& pin);  // off
// Connects the pin to a peripheral, very high speed.
void make_alternate(const Pin& pin, uint32_t function, Pull pull);

bool is_on(const Pin& pin);
void set(const Pin& pin, bool on);

}  // namespace pmt::stm32
