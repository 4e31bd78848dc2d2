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

Vector<int8_t> ReferenceEstimate::direction(const Layer& layer, const QueryId& id, Purpose purpose,
                                            int32_t count) const {
  const bool pairs = options_.pairs == Pairs::antithetic;
  const uint32_t query = pairs ? id.query / 2 : id.query;
  const auto op = static_cast<uint32_t>(layer.op);
  const Vector<int8_t> values = reference::rademacher(
      options_.generator, {options_.seed, step_, op, query, owner(layer, id.sample), purpose}, count);
  return pairs && id.query % 2 == 1 ? Vector<int8_t>(-values) : values;
}

}  // namespace pmt::tests
