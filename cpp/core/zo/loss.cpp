#include "core/zo/loss.hpp"

#include "core/zo/loss_units.hpp"
#include "core/zo/margin_losses.hpp"
#include "core/zo/softmax_losses.hpp"

namespace pmt {
namespace {

int32_t loss_of(const StepContext& context, const Target& target, const float* logits, int32_t classes) {
  const TrainerOptions& options = *context.options;
  switch (options.loss) {
    case Loss::squared_error: return squared_error(logits, classes, target);
    case Loss::huber: return huber(logits, classes, target, options.huber_delta);
    case Loss::binary_cross_entropy: return binary_cross_entropy(logits, classes, target);
    case Loss::hinge: return hinge(logits, classes, target.label);
    case Loss::entropy: return entropy(logits, classes, {options.diversity, context.surprisal});
    case Loss::zero_one: return zero_one(logits, classes, target.label, options.top_k);
    case Loss::ranking: return ranking(logits, classes, target.label);
    default: break;
  }
  return options.label_smoothing > 0.0f ? smoothed_cross_entropy(logits, classes, target.label, options.label_smoothing)
                                        : cross_entropy(logits, classes, target.label);
}

}  // namespace

Status losses_of(const StepContext& context, const ScoredSample& sample, const float* logits, int32_t count,
                 int32_t* losses) {
  const LossFunction* function = context.loss_function;
  if (function != nullptr) {
    const bool done = function->losses(function->context, logits, count, sample.index, losses);
    return done ? Status{} : Status{Code::loss_function};
  }
  if (context.options->loss == Loss::function) return {Code::option_loss};
  const int32_t classes = context.model().classes();
  for (int32_t i = 0; i < count; ++i) losses[i] = loss_of(context, sample.target, logits + i * classes, classes);
  return {};
}

void loss_gradient(const StepContext& context, const ScoredSample& sample, const float* logits, int32_t* gradient) {
  const TrainerOptions& options = *context.options;
  const int32_t classes = context.model().classes(), label = sample.target.label;
  switch (options.loss) {
    case Loss::squared_error: return squared_error_gradient(logits, classes, sample.target, gradient);
    case Loss::huber: return huber_gradient(logits, classes, sample.target, options.huber_delta, gradient);
    case Loss::binary_cross_entropy: return binary_cross_entropy_gradient(logits, classes, sample.target, gradient);
    case Loss::hinge: return hinge_gradient(logits, classes, label, gradient);
    case Loss::entropy: return entropy_gradient(logits, classes, {options.diversity, context.surprisal}, gradient);
    case Loss::ranking: return ranking_gradient(logits, classes, label, gradient);
    default: break;
  }
  if (options.label_smoothing > 0.0f) {
    smoothed_cross_entropy_gradient(logits, classes, label, options.label_smoothing, gradient);
  } else {
    cross_entropy_gradient(logits, classes, label, gradient);
  }
}

}  // namespace pmt
