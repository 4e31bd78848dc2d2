// A table of kernels that counts the instructions of each.
#pragma once

#include "core/kernels/table.hpp"

namespace pmt::instructions {

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
