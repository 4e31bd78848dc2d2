// What calibrate() measures with, on the trainer's own tables.
#include "core/base/arithmetic.hpp"
#include "core/train/calibration.hpp"
#include "core/zo/loss.hpp"

namespace pmt {
namespace {

// Steps count from 0 and stay below: a probe's directions are those of no step.
constexpr uint32_t probe_streams = uint32_t{1} << 31;

// Of a difference from the mean: squares of 4096 queries fit int64.
constexpr int64_t largest_difference = int64_t{16} << loss_fraction_bits;

// Unbiased, in squared nats. The sum is exact, so that only the quotient rounds.
float variance_of(const int32_t* losses, int32_t queries) {
  int64_t mean = 0;
  for (int32_t q = 0; q < queries; ++q) mean += losses[q];
  mean = divide_rounded(mean, queries);
  int64_t squares = 0;
  for (int32_t q = 0; q < queries; ++q) {
    int64_t difference = losses[q] - mean;
    difference = difference > largest_difference ? largest_difference : difference;
    difference = difference < -largest_difference ? -largest_difference : difference;
    squares += difference * difference;
  }
  return to_float(squares) / (loss_one * loss_one) / static_cast<float>(queries - 1);
}

}  // namespace

void Trainer::apply(int32_t layer, const LayerSettings& settings) {
  layers_[layer].estimator = settings.estimator;
  layers_[layer].queries = settings.queries;
  layers_[layer].mu_weight = settings.mu_weight;
  layers_[layer].mu_node = settings.mu_node;
}

// Summed sample by sample.
float Trainer::loss_variance(int32_t layer, int32_t samples) {
  const int32_t queries = table_queries(layer);
  if (shares_perturbations(layers_[layer].estimator)) {
    average_over_batch(layer, samples);
    return variance_of(averages_, queries);
  }
  float sum = 0.0f;
  for (int32_t n = 0; n < samples; ++n) sum += variance_of(losses(layer, n), queries);
  return sum / static_cast<float>(samples);
}

Status Trainer::probe(const LayerSettings* settings, uint32_t step, int32_t samples, const SampleSource& source,
                      int32_t probe, LayerMeasurement* measurements) {
  if (!setup_.probing) return {Code::arena_too_small};
  if (options_.scope == Scope::model_wise) return {Code::option_scope};
  if (samples < 1 || samples > setup_.batch) return {Code::batch_size};
  for (int32_t i = 0; i < setup_.layer_count; ++i) {
    const LayerSettings& other = settings[i];
    PMT_RETURN_IF_ERROR(check_settings(*setup_.model, layers_[i].op, options_, other));
    if (other.queries < 2 || other.queries > options_.probe_queries) return {Code::option_probe, layers_[i].op};
  }
  for (int32_t i = 0; i < setup_.layer_count; ++i) {
    const Layer& layer = layers_[i];
    settings_[i] = {layer.queries, layer.mu_weight, layer.mu_node, layer.estimator};
    apply(i, settings[i]);
  }
  open_table();
  const Status status = evaluate(step | probe_streams, samples, source);
  for (int32_t i = 0; status.ok() && i < table_count(); ++i) {
    const Estimator estimator = layers_[i].estimator;
    if (estimator == Estimator::closed_form) continue;
    measurements[i].variance[static_cast<uint32_t>(estimator)][probe] = loss_variance(i, samples);
  }
  for (int32_t i = 0; i < setup_.layer_count; ++i) apply(i, settings_[i]);
  open_table();
  return status;
}

// One forward of each sample, on the first worker.
Status Trainer::measure_inputs(int32_t samples, const SampleSource& source, LayerMeasurement* measurements) {
  if (samples < 1 || samples > setup_.batch) return {Code::batch_size};
  for (int32_t i = 0; i < setup_.layer_count; ++i) measurements[i].input_squares = 0.0f;
  for (int32_t n = 0; n < samples; ++n) {
    int32_t label = 0, done = 0;
    PMT_RETURN_IF_ERROR(read_sample(source, n, 0, &label));
    if (setup_.executor.stopping(setup_.executor.context, 0)) return {Code::cancelled};
    for (int32_t i = 0; i < setup_.layer_count; ++i) {
      const Layer& layer = layers_[i];
      if (layer.estimator == Estimator::closed_form) continue;
      forward(network_, plan_, workspaces_[0], 1, done, layer.op + 1);
      done = layer.op + 1;
      const int64_t squares = free_input_squares(estimation_, workspaces_[0], layer);
      measurements[i].input_squares += to_float(squares) / static_cast<float>(samples);
    }
  }
  return {};
}

}  // namespace pmt
