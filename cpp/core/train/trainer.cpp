#include "core/train/trainer.hpp"

#include "core/base/arithmetic.hpp"
#include "core/train/gradient_pass.hpp"
#include "core/train/query_pass.hpp"
#include "core/zo/loss_range.hpp"

namespace pmt {

Status Trainer::open(const TrainerSetup& setup, void* memory, size_t bytes) {
  if (reinterpret_cast<uintptr_t>(memory) % image_alignment != 0) return {Code::arena_alignment};
  arena_ = Arena(memory, bytes);
  PMT_RETURN_IF_ERROR(memory_.open(setup, arena_));
  losses_.open(arena_, memory_);
  gradients_.open(arena_, memory_);
  memory_.open_workers(arena_);
  if (!arena_.fits()) return {Code::arena_too_small};
  memory_.context.surprisal = prediction().surprisal();
  estimated_ = memory_.layers;
  return {};
}

UpdateInput Trainer::update_input(const Layer& layer, float learning_rate, int32_t samples) const {
  return {learning_rate, samples, shares_perturbations(memory_.options, layer.estimator) ? 1 : samples};
}

Status Trainer::estimate(uint32_t step, int32_t samples, const SampleSource& source, int32_t layer) {
  if (memory_.setup.compact) return {Code::estimate_compact};
  if (samples < 1 || samples > memory_.setup.batch) return {Code::batch_size};
  if (layer < 0 || layer >= layer_count()) return {Code::layer_not_trainable, layer};
  PMT_RETURN_IF_ERROR(QueryPass(memory_, losses_, samples, source).run(step));
  losses_.to_differences(samples);
  estimated_ = &memory_.layers[layer];
  GradientSums sums = {};
  return GradientPass(memory_, losses_, gradients_, layer, samples, source).sum({0, estimated_->channels}, &sums);
}

Status Trainer::step(uint32_t step, float learning_rate, int32_t samples, const SampleSource& source,
                     StepResult* result) {
  if (samples < 1 || samples > memory_.setup.batch) return {Code::batch_size};
  if (!is_finite(learning_rate) || learning_rate < 0.0f) return {Code::option_learning_rate};
  PMT_RETURN_IF_ERROR(QueryPass(memory_, losses_, samples, source).run(step));
  return update(learning_rate, samples, source, result);
}

Status Trainer::query(uint32_t step, int32_t sample, int32_t samples, const SampleSource& source) {
  if (samples < 1 || samples > memory_.setup.batch || sample >= samples) return {Code::batch_size};
  QueryPass pass(memory_, losses_, samples, source);
  if (sample == 0) pass.begin(step);
  return pass.run_sample(sample);
}

// Not in line: link-time optimization would keep the frame of both halves while either runs.
__attribute__((noinline)) Status Trainer::update(float learning_rate, int32_t samples, const SampleSource& source,
                                                 StepResult* result) {
  if (!is_finite(learning_rate) || learning_rate < 0.0f) return {Code::option_learning_rate};
  *result = {0, 0, 0};
  for (int32_t n = 0; n < samples; ++n) {
    result->loss_sum += losses_.clean(n).loss;
    result->correct += losses_.clean(n).correct;
  }
  result->loss_sum = in_loss_units(result->loss_sum, context().loss_shift);
  losses_.to_differences(samples);
  ++steps_begun_;
  for (int32_t i = layer_count() - 1; i >= 0; --i) {
    PMT_RETURN_IF_ERROR(update_layer(i, learning_rate, samples, source, &result->changed));
    repack_layer(memory_.network, layer(i).op);
  }
  prediction().write_surprisal(samples);
  return {};
}

// Where the size of the step depends on all of the gradient, every group is summed up to be accumulated,
// and, unless it is the only one, once more to be applied.
Status Trainer::update_layer(int32_t index, float learning_rate, int32_t samples, const SampleSource& source,
                             int32_t* changed) {
  const Layer& layer = memory_.layers[index];
  GradientPass gradient(memory_, losses_, gradients_, index, samples, source);
  LayerUpdate update(memory_.context, layer, update_input(layer, learning_rate, samples));
  const int32_t at_once = channels_at_once(layer);
  GradientSums sums = {};
  for (int32_t c = 0; update.needs_all_sums() && c < layer.channels; c += at_once) {
    PMT_RETURN_IF_ERROR(gradient.sum({c, c + at_once}, &sums));
    update.accumulate(sums);
  }
  const bool have_sums = update.needs_all_sums() && at_once == layer.channels;
  for (int32_t c = 0; c < layer.channels; c += at_once) {
    if (!have_sums) PMT_RETURN_IF_ERROR(gradient.sum({c, c + at_once}, &sums));
    *changed += update.apply(sums);
  }
  return {};
}

}  // namespace pmt
