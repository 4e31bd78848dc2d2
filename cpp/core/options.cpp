#include "core/options.hpp"

#include "core/arithmetic.hpp"

namespace pmt {
namespace {

template <typename Enumeration>
bool inside(Enumeration value, Enumeration last) {
  return static_cast<uint32_t>(value) <= static_cast<uint32_t>(last);
}

Status check_directions(const TrainerOptions& o) {
  const bool enumerations = inside(o.directions, Directions::coordinate) && inside(o.pairs, Pairs::antithetic) &&
                            inside(o.hadamard_index, HadamardIndex::running);
  if (!enumerations) return {Code::option_value};
  const bool coordinate = o.directions == Directions::coordinate;
  const bool uneven = o.queries % 2 != 0 || o.allocation != Allocation::uniform;
  if (o.pairs == Pairs::antithetic && (coordinate || uneven)) return {Code::option_pairs};
  const bool running = o.hadamard_index == HadamardIndex::running;
  if (running && (o.directions != Directions::hadamard || o.sharing == Sharing::batch)) return {Code::option_index};
  const bool measured = is_measured(o) || o.gradient_norm_scaling == GradientNormScaling::measured;
  if (coordinate && (o.scope == Scope::model_wise || measured)) return {Code::option_coordinate};
  if (!(o.sparsity >= 0.0f && o.sparsity < 1.0f) || o.mask_interval < 1) return {Code::option_sparsity};
  return {};
}

bool fades(float memory) { return memory >= 0.0f && memory < 1.0f; }

Status check_update(const TrainerOptions& o) {
  const bool enumerations = inside(o.gradient_norm_scaling, GradientNormScaling::measured) &&
                            inside(o.rounding, Rounding::stochastic) && inside(o.step, Step::normalised) &&
                            inside(o.optimiser, Optimiser::adam);
  if (!enumerations || o.train_weights > 1 || o.train_bias > 1) return {Code::option_value};
  if (o.train_weights == 0 && o.train_bias == 0) return {Code::option_nothing_trained};
  if (!fades(o.momentum) || !fades(o.adam_beta2) || !fades(o.shrinkage_memory)) return {Code::option_memory};
  return {};
}

}  // namespace

int32_t least_queries(const TrainerOptions& options) { return options.baseline == Baseline::leave_one_out ? 2 : 1; }

bool is_measured(const TrainerOptions& options) {
  return options.allocation != Allocation::uniform || options.mu != MuRule::fixed ||
         options.rule == EstimatorRule::measured;
}

Status check_options(const TrainerOptions& o) {
  if (o.queries < least_queries(o) || o.queries > most_queries) return {Code::option_queries};
  if (o.mu_weight < 1 || o.mu_weight > largest_mu || o.mu_node < 1 || o.mu_node > largest_mu) {
    return {Code::option_mu};
  }
  if (o.generator == Generator::xorshift32 && o.seed == 0) return {Code::option_seed};
  PMT_RETURN_IF_ERROR(check_directions(o));
  const bool enumerations = inside(o.generator, Generator::xorshift32) && inside(o.scope, Scope::model_wise) &&
                            inside(o.baseline, Baseline::leave_one_out) && inside(o.rule, EstimatorRule::measured) &&
                            inside(o.node_dimension, NodeDimension::input) && inside(o.sharing, Sharing::batch) &&
                            inside(o.allocation, Allocation::variance) && inside(o.mu, MuRule::calibrated);
  const bool flags = o.quantisation_aware_scaling <= 1 && o.int8_logits <= 1 && o.mu_per_channel <= 1;
  const bool sizes = is_finite(o.node_ratio) && o.node_ratio > 0.0f && o.weight_tile_bytes >= 0;
  if (!enumerations || !flags || !sizes) return {Code::option_value};
  PMT_RETURN_IF_ERROR(check_update(o));
  if (is_measured(o) && o.scope == Scope::model_wise) return {Code::option_scope};
  if (is_measured(o) && o.train_weights == 0) return {Code::option_measured};
  if (o.probe_samples < 1 || o.probe_queries < 2 || o.probe_queries > most_queries) return {Code::option_probe};
  return {};
}

}  // namespace pmt
