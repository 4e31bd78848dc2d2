// The directions of a ReferenceEstimate's queries.
#include "reference/random.hpp"
#include "tests/reference_estimate.hpp"

namespace pmt::tests {

using reference::Vector;

uint32_t ReferenceEstimate::owner(const Layer& layer, uint32_t sample) const {
  const bool weights = layer.estimator == Estimator::weight_perturbation;
  const bool shared = weights && options_.sharing == Sharing::batch;
  return shared ? 0 : sample;
}

// Perturbed apart, weights are moved by the first half of the directions, biases by the others.
bool ReferenceEstimate::moves(const QueryId& id, Purpose purpose) const {
  const bool both = options_.train_weights != 0 && options_.train_bias != 0;
  if (options_.separate_biases == 0 || !both || purpose == Purpose::node_signs) return true;
  const int32_t of_a_direction = options_.pairs == Pairs::antithetic ? 2 : 1;
  const int32_t directions = options_.queries / of_a_direction;
  const int32_t of_weights = (directions + 1) / 2 * of_a_direction;
  return (static_cast<int32_t>(id.query) < of_weights) == (purpose == Purpose::weight_signs);
}

Vector<int8_t> ReferenceEstimate::direction(const Layer& layer, const QueryId& id, Purpose purpose,
                                            int32_t count) const {
  if (!moves(id, purpose)) return xt::zeros<int8_t>({static_cast<size_t>(count)});
  const bool pairs = options_.pairs == Pairs::antithetic;
  const uint32_t query = pairs ? id.query / 2 : id.query;
  const auto op = static_cast<uint32_t>(layer.op);
  const Vector<int8_t> values = reference::rademacher(
      options_.generator, {options_.seed, step_, op, query, owner(layer, id.sample), purpose}, count);
  return pairs && id.query % 2 == 1 ? Vector<int8_t>(-values) : values;
}

}  // namespace pmt::tests
