// Random networks of expansions, depthwise layers and projections: what a compact plan streams.
#pragma once

#include "tests/aligned_bytes.hpp"
#include "tests/random_source.hpp"

namespace pmt::tests {

// `blocks` of an expansion, a depthwise layer or a pool of any window, stride and padding, and a
// projection, with a residual addition where the shapes allow one; then a fully connected head. An input
// stage has no filters.
AlignedBytes random_bottlenecks(RandomSource& random, int32_t blocks, bool has_stage = false);

}  // namespace pmt::tests
