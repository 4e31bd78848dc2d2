// Pins, serial line, watchdog and reset flags of an STM32: the same registers in every generation.
#pragma once

#include <cstdint>

namespace pmt::stm32 {

// Pins of an STM32 (RM0385 section 6, RM0455 section 11: the same registers).
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

// A serial line, 8N1, that sends, and receives once it is told to (RM0385 section 31, RM0455 section 51).
// `kernel_hz` is the clock that the peripheral divides.
void open_usart(uint32_t base, uint32_t kernel_hz, uint32_t baud);
// Waits for room; "\n" is sent as "\r\n". Where the line is not open, or takes nothing for long, the text is
// lost, and no time.
void send(uint32_t base, const char* text);
// Waits until the last bit is on the line.
void flush_usart(uint32_t base);
void start_receiving(uint32_t base);
// Whether a byte has come. What came while nobody took one is lost.
bool receive(uint32_t base, uint8_t* byte);

// The independent watchdog (RM0385 section 26, RM0455 section 46): it has its own oscillator of about
// 32 kHz, and nothing but a reset stops it. While a debugger holds the processor, it stands still.
struct Watchdog {
  uint32_t base;
  // The debug unit's register, and its bit that stops the watchdog with the processor.
  uint32_t freeze, freeze_bit;
};

constexpr uint32_t longest_seconds = 32;

// Resets the chip so long after the last feeding, roughly. It may be started again, with another time.
void start_watchdog(const Watchdog& watchdog, uint32_t seconds = longest_seconds);
void feed_watchdog(const Watchdog& watchdog);

// Why the chip started: the flags of RCC_CSR (RM0385 section 5.3.21) and RCC_RSR (RM0455 section 8.7.35).
struct ResetFlags {
  uint32_t address;
  uint32_t power, watchdog, software, pin;
  uint32_t clear;
};

enum class ResetCause { power, watchdog, software, pin, other };

// Clears the flags: otherwise they add up from one reset to the next.
ResetCause take_reset_cause(const ResetFlags& flags);

// "by ..."
const char* name_of(ResetCause cause);

}  // namespace pmt::stm32
