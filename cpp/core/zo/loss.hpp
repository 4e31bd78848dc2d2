// The loss of a step, as its options choose it: the one place from which queries, the clean loss and the exact
// gradient of a linear head have it. Fixed-point, see loss_units.hpp.
#pragma once

#include "core/zo/elementwise_losses.hpp"
#include "core/zo/step_context.hpp"

namespace pmt {

// A loss of `count` rows of logits, all of one sample, by a function of the host's. It writes fixed-point losses;
// false: it failed, and the step with it.
struct LossFunction {
  void* context;
  bool (*losses)(void* context, const float* logits, int32_t count, int32_t sample, int32_t* losses);
};

// The sample that logits are of.
struct ScoredSample {
  int32_t index;  // in the batch
  Target target;
};

// A sample without a label, for a loss that needs none.
constexpr int32_t no_label = -1;

// One loss for each of `count` rows of logits.
Status losses_of(const StepContext& context, const ScoredSample& sample, const float* logits, int32_t count,
                 int32_t* losses);

// The gradient of a loss that has one, by the logits.
void loss_gradient(const StepContext& context, const ScoredSample& sample, const float* logits, int32_t* gradient);

}  // namespace pmt
