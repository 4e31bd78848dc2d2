// A table of kernels that counts the instructions of each.
#pragma once

#include "core/kernels/table.hpp"

namespace pmt::instructions {

// Instructions executed so far, under QEMU with -icount shift=8: virtual time goes on by 256 ns with
// each, and the board's counter by one every 40 ns. To be read at least once in 600 million instructions.
class Counter {
 public:
  Counter();
  // Since the last call, less what an empty measurement takes.
  int64_t lap();

 private:
  uint32_t last_;
  uint32_t empty_ = 0;  // ticks
};

enum class Part { layers, other_ops, signs, perturbation, accumulation, outer_products, rest };
constexpr int32_t parts = 7;

struct Counts {
  int64_t instructions[parts];
  int64_t calls[parts];
};

// `kernels`, counted; one table at a time.
const Kernels& counted(const Kernels& kernels);

// Since counted() or the last call.
Counts take_counts();

}  // namespace pmt::instructions
