// Random choices of directions that go together.
#pragma once

#include "core/zo/options.hpp"
#include "tests/random_source.hpp"

namespace pmt::tests {

// Takes back what does not go with the scope or the sharing of `options`.
inline void make_consistent(TrainerOptions& options) {
  if (options.directions == Directions::coordinate) {
    options.pairs = Pairs::one_sided;
    if (options.scope == Scope::model_wise) options.directions = Directions::rademacher;
  }
  if (options.directions != Directions::hadamard || options.sharing == Sharing::batch) {
    options.hadamard_index = HadamardIndex::per_sample;
  }
  if (options.pairs == Pairs::antithetic) options.queries += options.queries % 2;
}

inline EstimatorRule random_rule(RandomSource& random) { return static_cast<EstimatorRule>(random.integer(0, 3)); }

inline void random_directions(RandomSource& random, TrainerOptions& options) {
  options.directions = random.pick<Directions>({Directions::rademacher, Directions::rademacher, Directions::hadamard,
                                                Directions::hadamard, Directions::hadamard, Directions::coordinate});
  options.pairs = static_cast<Pairs>(random.integer(0, 1));
  options.hadamard_index = static_cast<HadamardIndex>(random.integer(0, 1));
  options.sparsity = random.pick<float>({0.0f, 0.0f, 0.3f, 0.9f});
  options.mask_interval = random.integer(1, 3);
  options.regions = random.integer(1, 5);
  if (options.directions == Directions::coordinate) options.sparsity = 0.95f;  // a query each: keeps tests quick
  make_consistent(options);
}

}  // namespace pmt::tests
