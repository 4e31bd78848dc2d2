// Random choices of estimators and directions that go together.
#pragma once

#include "core/zo/options.hpp"
#include "tests/random_source.hpp"

namespace pmt::tests {

inline EstimatorRule random_rule(RandomSource& random) { return static_cast<EstimatorRule>(random.integer(0, 3)); }

inline void random_directions(RandomSource& random, TrainerOptions& options) {
  options.pairs = static_cast<Pairs>(random.integer(0, 1));
  options.nodes = static_cast<PerturbedNodes>(random.integer(0, 1));
  options.mu_bias = random.chance(2) ? 0 : random.integer(1, 300);
  options.separate_biases = random.chance(3) ? 1 : 0;
  if (options.pairs == Pairs::antithetic) options.queries += options.queries % 2;
  if (options.queries < least_queries(options)) options.queries = least_queries(options);
}

}  // namespace pmt::tests
