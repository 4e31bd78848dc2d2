// The parts that are linked: all. `pmt export` writes this file anew, with those that its model and options use.
#pragma once

#include <cstdint>

namespace pmt::linked {

// A bit for each enumerator; of depthwise_sides for each side of a kernel.
constexpr uint32_t ops = ~0u;
constexpr uint32_t depthwise_sides = ~0u;
constexpr uint32_t estimators = ~0u;
constexpr uint32_t losses = ~0u;
constexpr uint32_t generators = ~0u;
constexpr bool input_stage = true;
constexpr bool input_search = true, learning = true, kept_activations = true, windows = true;  // of a learner

}  // namespace pmt::linked
