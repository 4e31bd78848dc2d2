#include "instructions/counter.hpp"

namespace pmt::instructions {
namespace {

constexpr uintptr_t counter_register = 0x40028018;  // FPGAIO COUNTER of Arm's MPS2+ (AN500)
constexpr int64_t tick_ns = 40;
constexpr int64_t instruction_ns = 256;

uint32_t ticks() { return *reinterpret_cast<volatile uint32_t*>(counter_register); }

}  // namespace

Counter::Counter() : last_(ticks()) {
  lap();
  const uint32_t before = last_;
  lap();
  empty_ = last_ - before;
  lap();
}

int64_t Counter::lap() {
  const uint32_t now = ticks();
  const uint32_t passed = now - last_;
  last_ = now;
  // Rounded, this is exact: an instruction is more than six ticks.
  const int64_t ticks_taken = static_cast<int64_t>(passed) - empty_;
  return (ticks_taken * tick_ns + instruction_ns / 2) / instruction_ns;
}

}  // namespace pmt::instructions
