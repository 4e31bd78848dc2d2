#include "drivers/stm32/reset_cause.hpp"

#include "drivers/io.hpp"

namespace pmt::stm32 {

// Every reset pulls the pin low: its flag says something where no other is set.
ResetCause take_reset_cause(const ResetFlags& flags) {
  const uint32_t set = io::read(flags.address);
  io::set_bits(flags.address, flags.clear);
  if ((set & flags.power) != 0) return ResetCause::power;
  if ((set & flags.watchdog) != 0) return ResetCause::watchdog;
  if ((set & flags.software) != 0) return ResetCause::software;
  return (set & flags.pin) != 0 ? ResetCause::pin : ResetCause::other;
}

const char* name_of(ResetCause cause) {
  switch (cause) {
    case ResetCause::power: return "power-on";
    case ResetCause::watchdog: return "the watchdog";
    case ResetCause::software: return "software";
    case ResetCause::pin: return "the reset pin";
    default: return "something else";
  }
}

}  // namespace pmt::stm32
