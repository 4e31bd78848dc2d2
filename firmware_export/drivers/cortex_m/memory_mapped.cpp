#include "drivers/io.hpp"

namespace pmt::io {

uint32_t read(uint32_t address) { return *reinterpret_cast<volatile uint32_t*>(address); }

void write(uint32_t address, uint32_t value) { *reinterpret_cast<volatile uint32_t*>(address) = value; }

}  // namespace pmt::io
