// The directions of a ReferenceEstimate's queries.
#include <algorithm>

#include "reference/hadamard.hpp"
#include "reference/random.hpp"
#include "reference/sparsity.hpp"
#include "tests/reference_estimate.hpp"

namespace pmt::tests {
namespace {

using reference::Vector;

Vector<int8_t> zeros(int32_t count) { return xt::zeros<int8_t>({static_cast<size_t>(count)}); }

bool fits(double value, double low, double high) { return value >= low && value <= high; }

// Up, or down where only that fits; where neither does, to the side with more room.
int8_t way(double value, double mu, double low, double high) {
  if (fits(value + mu, low, high)) return 1;
  return high - value >= value - low ? 1 : -1;
}

size_t region_columns(const Layer& layer) {
  return static_cast<size_t>(layer.channels * layer.region_rows * layer.region_columns);
}

size_t columns_of(const TrainerOptions& options, const Layer& layer) {
  switch (layer.estimator) {
    case Estimator::closed_form: return 0;
    case Estimator::node_perturbation: return static_cast<size_t>(layer.node_count);
    case Estimator::pooled_perturbation: return region_columns(layer);
    default:
      return static_cast<size_t>(trained_weights(options, layer) + (options.train_bias != 0 ? layer.channels : 0));
  }
}

}  // namespace

uint32_t ReferenceEstimate::owner(const Layer& layer, uint32_t sample) const {
  const bool weights = layer.estimator == Estimator::weight_perturbation;
  const bool shared = weights && options_.sharing == Sharing::batch;
  return shared || options_.hadamard_index == HadamardIndex::running ? 0 : sample;
}

int32_t ReferenceEstimate::query_count(const Layer& layer) const {
  if (options_.directions != Directions::coordinate) return layer.queries;
  if (layer.estimator == Estimator::node_perturbation) return layer.node_count;
  if (layer.estimator == Estimator::pooled_perturbation) return static_cast<int32_t>(region_columns(layer));
  const auto weights = static_cast<int32_t>(active_weights(layer).size());
  return weights + (options_.train_bias != 0 ? layer.channels : 0);
}

std::vector<int32_t> ReferenceEstimate::active_weights(const Layer& layer) const {
  if (options_.train_weights == 0) return {};
  const uint32_t draw = step_ / static_cast<uint32_t>(options_.mask_interval);
  std::vector<int32_t> order = reference::random_order(
      {options_.seed, draw, static_cast<uint32_t>(layer.op), 0, 0, Purpose::mask}, layer.weight_count);
  const auto left_out = static_cast<size_t>(options_.sparsity * static_cast<float>(layer.weight_count) + 0.5f);
  order.resize(std::max<size_t>(1, order.size() - left_out));
  return order;
}

Vector<int8_t> ReferenceEstimate::direction(const Layer& layer, const QueryId& id, Purpose purpose,
                                            int32_t count) const {
  if (options_.directions == Directions::coordinate) return coordinate(layer, id, purpose, count);
  const bool pairs = options_.pairs == Pairs::antithetic;
  const QueryId pair = {pairs ? id.query / 2 : id.query, id.sample};
  const auto op = static_cast<uint32_t>(layer.op);
  Vector<int8_t> values =
      options_.directions == Directions::hadamard
          ? hadamard(layer, pair, purpose, count)
          : reference::rademacher(options_.generator,
                                  {options_.seed, step_, op, pair.query, owner(layer, id.sample), purpose}, count);
  if (pairs && id.query % 2 == 1) values = -values;
  if (purpose != Purpose::weight_signs) return values;
  Vector<int8_t> active = zeros(count);
  for (const int32_t weight : active_weights(layer)) {
    active(static_cast<size_t>(weight)) = values(static_cast<size_t>(weight));
  }
  return active;
}

Vector<int8_t> ReferenceEstimate::hadamard(const Layer& layer, const QueryId& id, Purpose purpose,
                                           int32_t count) const {
  const bool together = options_.scope == Scope::model_wise;
  size_t columns = 0, first = 0;
  for (int32_t i = 0; i < trainer_.layer_count(); ++i) {
    const Layer& other = this->layer(i);
    if (!together && other.op != layer.op) continue;
    if (other.op == layer.op) first = columns;
    columns += columns_of(options_, other);
  }
  if (purpose == Purpose::bias_signs) first += static_cast<size_t>(trained_weights(options_, layer));
  const size_t order = reference::hadamard_order(columns);
  const bool pairs = options_.pairs == Pairs::antithetic;
  const auto directions = static_cast<uint32_t>(pairs ? query_count(layer) / 2 : query_count(layer));
  const bool running = options_.hadamard_index == HadamardIndex::running;
  const size_t row = (running ? id.sample * directions + id.query : id.query) % order;
  const auto op = static_cast<uint32_t>(layer.op), own = owner(layer, id.sample);
  const auto shift_op = static_cast<uint32_t>(together ? this->layer(0).op : layer.op);
  const uint32_t shift = reference::philox4x32(
      {0, own, shift_op, static_cast<uint32_t>(Purpose::hadamard_shift) * 65536u}, {options_.seed, step_})[0];
  const auto signs = reference::rademacher(options_.generator, {options_.seed, step_, op, 0, own, purpose}, count);
  return reference::hadamard_direction(signs, reference::hadamard_matrix(order), row, first, shift % order);
}

Vector<int8_t> ReferenceEstimate::coordinate(const Layer& layer, const QueryId& id, Purpose purpose,
                                             int32_t count) const {
  const OpRecord& op = model_.op(layer.op);
  const auto query = static_cast<size_t>(id.query);
  Vector<int8_t> values = zeros(count);
  if (layer.estimator == Estimator::pooled_perturbation) {
    values(query) = 1;
    return values;
  }
  if (layer.estimator == Estimator::node_perturbation) {
    const int8_t node = clean_[id.sample][op.output].flat(query);
    values(query) = way(node, layer.mu_node, op.clamp_min, op.clamp_max);
    return values;
  }
  const std::vector<int32_t> active = active_weights(layer);
  const OpParameters& own = parameters_[static_cast<size_t>(layer.op)];
  if (purpose == Purpose::weight_signs && query < active.size()) {
    const auto weight = static_cast<size_t>(active[query]);
    values(weight) = way(own.weights[weight], layer.mu_weight, -127, 127);
  }
  if (purpose == Purpose::bias_signs && query >= active.size()) {
    const size_t channel = query - active.size();
    const double mu = bias_step(model_, op, channel, layer.mu_weight);
    values(channel) = way(own.bias[channel], mu, INT32_MIN, INT32_MAX);
  }
  return values;
}

}  // namespace pmt::tests
