#include "core/zo/direction.hpp"

#include "core/zo/sparsity.hpp"

namespace pmt {
namespace {

bool is_shared(const TrainerOptions& options, const Layer& layer) {
  return shares_perturbations(options, layer.estimator) || options.hadamard_index == HadamardIndex::running;
}

uint32_t columns_of(const TrainerOptions& options, const Layer& layer) {
  if (layer.estimator == Estimator::closed_form) return 0;
  if (perturbs_nodes(layer)) return static_cast<uint32_t>(node_columns(layer));
  return static_cast<uint32_t>(trained_weights(options, layer) + (options.train_bias != 0 ? layer.channels : 0));
}

// Columns of the layers whose op is before `op`.
uint32_t columns_before(const StepContext& context, int32_t op) {
  uint32_t columns = 0;
  for (int32_t i = 0; i < context.layer_count && context.layers[i].op < op; ++i) {
    columns += columns_of(*context.options, context.layers[i]);
  }
  return columns;
}

bool is_antithetic(const StepContext& context) { return context.options->pairs == Pairs::antithetic; }

uint32_t direction_of(const StepContext& context, uint32_t query) { return is_antithetic(context) ? query / 2 : query; }

WalshRow row_of(const StepContext& context, const Layer& layer, const QueryId& id, Purpose purpose) {
  const bool backwards = is_antithetic(context) && id.query % 2 != 0;
  if (context.options->directions != Directions::hadamard) return {0, 0, backwards};
  const HadamardRows rows = hadamard_rows(context, layer, id.sample);
  const uint32_t direction = direction_of(context, id.query);
  return {rows.row(direction), first_column(context, layer, purpose), rows.negative(direction) != backwards};
}

int8_t upwards_unless_clipped(int64_t value, int64_t mu, int64_t low, int64_t high) {
  return value + mu <= high || high - value >= value - low ? 1 : -1;
}

}  // namespace

uint32_t column_count(const StepContext& context, const Layer& layer) {
  const bool together = context.options->scope == Scope::model_wise;
  return together ? columns_before(context, INT32_MAX) : columns_of(*context.options, layer);
}

int32_t direction_count(const StepContext& context, const Layer& layer) {
  const int32_t queries = layer.queries;
  return is_antithetic(context) ? queries / 2 : queries;
}

SignStream direction_signs(const StepContext& context, const Layer& layer, uint32_t direction, uint32_t sample,
                           Purpose purpose) {
  const TrainerOptions& options = *context.options;
  const uint32_t query = options.directions == Directions::hadamard ? 0 : direction;
  const uint32_t owner = is_shared(options, layer) ? 0 : sample;
  return {options.generator, {options.seed, context.step, static_cast<uint32_t>(layer.op), query, owner, purpose}};
}

HadamardRows hadamard_rows(const StepContext& context, const Layer& layer, uint32_t sample) {
  const TrainerOptions& options = *context.options;
  const bool together = options.scope == Scope::model_wise;
  const uint32_t order = power_of_two_above(column_count(context, layer));
  const bool running = options.hadamard_index == HadamardIndex::running;
  const auto directions = static_cast<uint32_t>(direction_count(context, layer));
  const StreamId id = {options.seed,
                       context.step,
                       static_cast<uint32_t>(together ? context.layers[0].op : layer.op),
                       0,
                       is_shared(options, layer) ? 0 : sample,
                       Purpose::hadamard_shift};
  return {order, running ? (sample * directions) & (order - 1) : 0, random_block(id, 0).word[0] & (order - 1)};
}

uint32_t first_column(const StepContext& context, const Layer& layer, Purpose purpose) {
  const bool together = context.options->scope == Scope::model_wise;
  const uint32_t first = together ? columns_before(context, layer.op) : 0;
  return purpose == Purpose::bias_signs ? first + static_cast<uint32_t>(trained_weights(*context.options, layer))
                                        : first;
}

Coordinate coordinate_of(const StepContext& context, const Workspace& workspace, const Layer& layer, int32_t query) {
  const Model& model = context.model();
  const TrainerOptions& options = *context.options;
  const OpRecord& op = model.op(layer.op);
  if (layer.estimator == Estimator::pooled_perturbation) return {Purpose::node_signs, query, 1};
  if (layer.estimator == Estimator::node_perturbation) {
    const int8_t node = workspace.tensor(*context.plan, Pass::main, op.output)[query];
    return {Purpose::node_signs, query, upwards_unless_clipped(node, layer.mu_node, op.clamp_min, op.clamp_max)};
  }
  const int32_t active = active_weights(options, layer);
  if (query >= active) {
    const int32_t channel = query - active;
    const int32_t mu = bias_mu(model, op, channel, layer.mu_weight);
    return {Purpose::bias_signs, channel, upwards_unless_clipped(layer.bias[channel], mu, INT32_MIN, INT32_MAX)};
  }
  const int32_t weight = weight_order(options, layer, context.step).at(query);
  return {Purpose::weight_signs, weight,
          upwards_unless_clipped(layer.weights[weight], layer.mu_weight, -largest_weight, largest_weight)};
}

Direction::Direction(const StepContext& context, const Workspace& workspace, const Layer& layer, const QueryId& id,
                     Purpose purpose)
    : directions_(context.options->directions),
      signs_(direction_signs(context, layer, direction_of(context, id.query), id.sample, purpose)),
      row_(row_of(context, layer, id, purpose)),
      flips_(directions_ == Directions::hadamard || is_antithetic(context)),
      coordinate_{purpose, -1, 0},
      mask_(nullptr) {
  if (directions_ == Directions::coordinate) {
    const Coordinate moved = coordinate_of(context, workspace, layer, static_cast<int32_t>(id.query));
    if (moved.purpose == purpose) coordinate_ = moved;
  } else if (purpose == Purpose::weight_signs) {
    mask_ = workspace.masks.of(*context.options, layer, context.step);
  }
}

void Direction::next_coordinate(int32_t count, int8_t* values) const {
  __builtin_memset(values, 0, static_cast<uint32_t>(count));
  const int32_t index = coordinate_.index - position_;
  if (coordinate_.index >= 0 && index >= 0 && index < count) values[index] = coordinate_.sign;
}

void Direction::next(const Kernels& kernels, int32_t count, int8_t* values) {
  if (directions_ == Directions::coordinate) {
    next_coordinate(count, values);
  } else {
    signs_.next(kernels, count, values);
    if (flips_) row_.apply(count, values);
    if (mask_ != nullptr) apply_mask(mask_ + position_, count, values);
  }
  position_ += count;
}

}  // namespace pmt
