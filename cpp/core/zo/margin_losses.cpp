#include "core/zo/margin_losses.hpp"

#include "core/zo/exponential.hpp"
#include "core/zo/loss_units.hpp"

namespace pmt {
namespace {

// The class of the largest logit but the label's; -1 where there is no other.
int32_t best_other(const float* logits, int32_t classes, int32_t label) {
  int32_t best = -1;
  for (int32_t c = 0; c < classes; ++c) {
    if (c != label && (best < 0 || logits[c] > logits[best])) best = c;
  }
  return best;
}

}  // namespace

int32_t hinge(const float* logits, int32_t classes, int32_t label) {
  if (!have_loss(logits, classes)) return largest_loss;
  const int32_t other = best_other(logits, classes, label);
  const float loss = other < 0 ? 0.0f : 1.0f + (logits[other] - logits[label]);
  return fixed_loss(loss < 0.0f ? 0.0f : loss);
}

void hinge_gradient(const float* logits, int32_t classes, int32_t label, int32_t* gradient) {
  for (int32_t c = 0; c < classes; ++c) gradient[c] = 0;
  const int32_t other = best_other(logits, classes, label);
  if (other < 0 || !have_loss(logits, classes) || hinge(logits, classes, label) <= 0) return;
  gradient[other] = 1 << loss_fraction_bits;
  gradient[label] = -(1 << loss_fraction_bits);
}

int32_t ranking(const float* logits, int32_t classes, int32_t label) {
  if (!have_loss(logits, classes)) return largest_loss;
  if (classes < 2) return 0;
  float sum = 0.0f;
  for (int32_t c = 0; c < classes; ++c) {
    if (c != label) sum += softplus(logits[c] - logits[label]);
  }
  return fixed_loss(sum / static_cast<float>(classes - 1));
}

void ranking_gradient(const float* logits, int32_t classes, int32_t label, int32_t* gradient) {
  const bool exists = have_loss(logits, classes);
  int32_t sum = 0;
  for (int32_t c = 0; c < classes; ++c) {
    gradient[c] = 0;
    if (c == label || !exists) continue;
    gradient[c] = fixed_gradient(sigmoid(logits[c] - logits[label]) / static_cast<float>(classes - 1));
    sum += gradient[c];
  }
  gradient[label] = -sum;
}

int32_t zero_one(const float* logits, int32_t classes, int32_t label, int32_t top) {
  if (!have_loss(logits, classes)) return largest_loss;
  int32_t before = 0;
  for (int32_t c = 0; c < classes; ++c) {
    before += logits[c] > logits[label] || (c < label && logits[c] == logits[label]) ? 1 : 0;
  }
  return before < top ? 0 : 1 << loss_fraction_bits;
}

}  // namespace pmt
