#include "core/zo/elementwise_losses.hpp"

#include "core/zo/exponential.hpp"
#include "core/zo/loss_units.hpp"

namespace pmt {
namespace {

// The mean of term(logit, target).
template <typename Term>
int32_t mean_loss(const float* logits, int32_t classes, const Target& target, const Term& term) {
  if (!have_loss(logits, classes)) return largest_loss;
  float sum = 0.0f;
  for (int32_t c = 0; c < classes; ++c) sum += term(logits[c], target.at(c));
  return fixed_loss(sum / static_cast<float>(classes));
}

template <typename Slope>
void mean_gradient(const float* logits, int32_t classes, const Target& target, int32_t* gradient, const Slope& slope) {
  const bool exists = have_loss(logits, classes);
  for (int32_t c = 0; c < classes; ++c) {
    gradient[c] = exists ? fixed_gradient(slope(logits[c], target.at(c)) / static_cast<float>(classes)) : 0;
  }
}

}  // namespace

int32_t squared_error(const float* logits, int32_t classes, const Target& target) {
  return mean_loss(logits, classes, target, [](float z, float y) { return (z - y) * (z - y); });
}

void squared_error_gradient(const float* logits, int32_t classes, const Target& target, int32_t* gradient) {
  mean_gradient(logits, classes, target, gradient, [](float z, float y) { return 2.0f * (z - y); });
}

int32_t huber(const float* logits, int32_t classes, const Target& target, float delta) {
  return mean_loss(logits, classes, target, [delta](float z, float y) {
    const float distance = z > y ? z - y : y - z;
    return distance <= delta ? 0.5f * distance * distance : delta * (distance - 0.5f * delta);
  });
}

void huber_gradient(const float* logits, int32_t classes, const Target& target, float delta, int32_t* gradient) {
  mean_gradient(logits, classes, target, gradient, [delta](float z, float y) { return clamp(z - y, -delta, delta); });
}

int32_t binary_cross_entropy(const float* logits, int32_t classes, const Target& target) {
  return mean_loss(logits, classes, target, [](float z, float y) { return softplus(z) - y * z; });
}

void binary_cross_entropy_gradient(const float* logits, int32_t classes, const Target& target, int32_t* gradient) {
  mean_gradient(logits, classes, target, gradient, [](float z, float y) { return sigmoid(z) - y; });
}

}  // namespace pmt
