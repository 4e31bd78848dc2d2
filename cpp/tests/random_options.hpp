// Random options of training that go together.
#pragma once

#include "core/zo/options.hpp"
#include "tests/random_source.hpp"

namespace pmt::tests {

inline EstimatorRule random_rule(RandomSource& random) { return static_cast<EstimatorRule>(random.integer(0, 3)); }

// Any of them, with any of the core's own losses.
inline TrainerOptions random_options(RandomSource& random) {
  TrainerOptions options;
  options.seed = static_cast<uint32_t>(random.integer(1, 1000));
  options.queries = random.integer(2, 7);
  options.mu_weight = random.integer(1, 20);
  options.mu_node = random.integer(1, 8);
  options.mu_bias = random.chance(2) ? 0 : random.integer(1, 300);
  options.generator = static_cast<Generator>(random.integer(0, 1));
  options.scope = static_cast<Scope>(random.integer(0, 1));
  options.baseline = static_cast<Baseline>(random.integer(0, 1));
  options.rule = random_rule(random);
  options.node_dimension = static_cast<NodeDimension>(random.integer(0, 1));
  options.nodes = static_cast<PerturbedNodes>(random.integer(0, 1));
  options.sharing = static_cast<Sharing>(random.integer(0, 1));
  options.rounding = static_cast<Rounding>(random.integer(0, 1));
  options.step = random.chance(3) ? Step::gradient : Step::normalized;
  options.gradient_norm_scaling = static_cast<GradientNormScaling>(random.integer(0, 3));
  options.quantization_aware_scaling = random.chance(4) ? 0 : 1;
  options.train_bias = static_cast<uint32_t>(random.integer(0, 1));
  options.train_weights = options.train_bias != 0 && random.chance(4) ? 0 : 1;
  options.separate_biases = random.chance(3) ? 1 : 0;
  options.loss = static_cast<Loss>(random.integer(0, static_cast<int32_t>(Loss::entropy)));
  options.diversity = random.chance(2) ? 0.0f : 0.7f;
  options.pairs = static_cast<Pairs>(random.integer(0, 1));
  if (options.pairs == Pairs::antithetic) options.queries += options.queries % 2;
  if (options.queries < least_queries(options)) options.queries = least_queries(options);
  return options;
}

}  // namespace pmt::tests
