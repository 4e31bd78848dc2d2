// Stands in for io.hpp's functions in drivers/cortex_m/startup.cpp: peripherals are models.
#pragma once

#include <cstdint>
#include <vector>

namespace pmt::test {

class Peripheral {
 public:
  virtual ~Peripheral() = default;
  virtual uint32_t read(uint32_t offset) = 0;
  virtual void write(uint32_t offset, uint32_t value) = 0;
};

// While it lives, io::read and io::write reach the peripherals attached to it; every access takes a
// microsecond. An address where nothing is fails the test.
class SimulatedBus {
 public:
  SimulatedBus();
  ~SimulatedBus();
  SimulatedBus(const SimulatedBus&) = delete;
  SimulatedBus& operator=(const SimulatedBus&) = delete;

  // Over what was attached there before.
  void attach(uint32_t base, uint32_t bytes, Peripheral* peripheral);
  uint32_t read(uint32_t address);
  void write(uint32_t address, uint32_t value);
  // Asking for the time takes a microsecond too.
  uint32_t milliseconds() { return static_cast<uint32_t>(++microseconds_ / 1000); }

 private:
  struct Range {
    uint32_t base, bytes;
    Peripheral* peripheral;
  };
  const Range& range_of(uint32_t address) const;

  std::vector<Range> ranges_;
  uint64_t microseconds_ = 0;
};

uint32_t bus_milliseconds();  // of the one that lives

}  // namespace pmt::test
