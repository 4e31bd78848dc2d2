// Any of the core's own losses, with its parameter.
#pragma once

#include "core/zo/options.hpp"
#include "tests/random_source.hpp"

namespace pmt::tests {

inline void random_loss(RandomSource& random, TrainerOptions& options) {
  options.loss = static_cast<Loss>(random.integer(0, static_cast<int32_t>(Loss::ranking)));
  options.label_smoothing = random.chance(2) ? 0.0f : 0.1f;
  options.huber_delta = random.pick<float>({0.5f, 1.0f, 3.0f});
  options.top_k = random.integer(1, 2);
  options.diversity = random.chance(2) ? 0.0f : 0.7f;
}

}  // namespace pmt::tests
