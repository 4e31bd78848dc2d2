// Any of the core's own losses, with its parameter.
#pragma once

#include "core/zo/options.hpp"
#include "tests/random_source.hpp"

namespace pmt::tests {

inline void random_loss(RandomSource& random, TrainerOptions& options) {
  options.loss = static_cast<Loss>(random.integer(0, static_cast<int32_t>(Loss::entropy)));
  options.diversity = random.chance(2) ? 0.0f : 0.7f;
}

}  // namespace pmt::tests
