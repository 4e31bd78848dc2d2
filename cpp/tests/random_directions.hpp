// Random choices of estimators and directions that go together.
#pragma once

#include "core/zo/options.hpp"
#include "tests/random_source.hpp"

namespace pmt::tests {

inline EstimatorRule random_rule(RandomSource& random) { return static_cast<EstimatorRule>(random.integer(0, 4)); }

inline void random_directions(RandomSource& random, TrainerOptions& options) {
  options.pairs = static_cast<Pairs>(random.integer(0, 1));
  if (options.pairs == Pairs::antithetic) options.queries += options.queries % 2;
}

}  // namespace pmt::tests
