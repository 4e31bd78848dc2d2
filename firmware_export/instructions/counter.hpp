// Instructions executed so far, under QEMU with -icount shift=8: virtual time goes on by 256 ns with
// each, and the board's counter by one every 40 ns.
#pragma once

#include <cstdint>

namespace pmt::instructions {

// To be read at least once in 600 million instructions.
class Counter {
 public:
  Counter();
  // Since the last call, less what an empty measurement takes.
  int64_t lap();

 private:
  uint32_t last_;
  uint32_t empty_ = 0;  // ticks
};

}  // namespace pmt::instructions
