#include "simulated_bus.hpp"

#include <doctest/doctest.h>

#include <cstddef>

#include "drivers/io.hpp"

namespace pmt::test {
namespace {

SimulatedBus* current = nullptr;

}  // namespace

uint32_t bus_milliseconds() { return current->milliseconds(); }

SimulatedBus::SimulatedBus() {
  REQUIRE(current == nullptr);
  current = this;
}

SimulatedBus::~SimulatedBus() { current = nullptr; }

void SimulatedBus::attach(uint32_t base, uint32_t bytes, Peripheral* peripheral) {
  ranges_.push_back({base, bytes, peripheral});
}

const SimulatedBus::Range& SimulatedBus::range_of(uint32_t address) const {
  for (size_t i = ranges_.size(); i-- > 0;) {
    if (address - ranges_[i].base < ranges_[i].bytes) return ranges_[i];
  }
  INFO("address ", address);
  REQUIRE_MESSAGE(false, "nothing is attached there");
  return ranges_.front();
}

uint32_t SimulatedBus::read(uint32_t address) {
  ++microseconds_;
  const Range& range = range_of(address);
  return range.peripheral->read(address - range.base);
}

void SimulatedBus::write(uint32_t address, uint32_t value) {
  ++microseconds_;
  const Range& range = range_of(address);
  range.peripheral->write(address - range.base, value);
}

}  // namespace pmt::test

namespace pmt::io {

uint32_t read(uint32_t address) { return test::current->read(address); }
void write(uint32_t address, uint32_t value) { test::current->write(address, value); }

}  // namespace pmt::io
