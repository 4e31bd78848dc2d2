#include "core/train/probe.hpp"

#include "core/base/arithmetic.hpp"
#include "core/train/query_pass.hpp"
#include "core/zo/loss_units.hpp"
#include "core/zo/shrinkage.hpp"

namespace pmt {
namespace {

// Steps count from 0 and stay below: a probe's directions are those of no step.
constexpr uint32_t probe_streams = uint32_t{1} << 31;

// Bound of a difference from the mean: squares of 4096 queries fit int64.
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

void Probe::apply(int32_t layer, const LayerSettings& settings) {
  Layer& probed = memory_.layers[layer];
  probed.estimator = settings.estimator;
  probed.queries = settings.queries;
  probed.mu_weight = settings.mu_weight;
  probed.mu_node = settings.mu_node;
}

// Summed sample by sample.
float Probe::variance(int32_t layer, int32_t samples) {
  const int32_t queries = losses_.queries(layer);
  if (shares_perturbations(memory_.options, memory_.layers[layer].estimator)) {
    losses_.average(layer, samples);
    return variance_of(losses_.averages(), queries);
  }
  float sum = 0.0f;
  for (int32_t n = 0; n < samples; ++n) sum += variance_of(losses_.row(layer, n), queries);
  return sum / static_cast<float>(samples);
}

Status Probe::check(const LayerSettings* settings, int32_t samples) const {
  const TrainerSetup& setup = memory_.setup;
  if (!setup.probing) return {Code::arena_too_small};
  if (!memory_.is_layer_wise()) return {Code::option_scope};
  if (samples < 1 || samples > setup.batch) return {Code::batch_size};
  for (int32_t i = 0; i < setup.layer_count; ++i) {
    const int32_t op = memory_.layers[i].op;
    PMT_RETURN_IF_ERROR(check_settings(*setup.model, op, memory_.options, settings[i]));
    if (settings[i].estimator == Estimator::pooled_perturbation) return {Code::option_measured_pooled, op};
    if (settings[i].queries < 2 || settings[i].queries > memory_.probe_queries()) return {Code::option_probe, op};
  }
  return {};
}

Status Probe::measure_losses(const LayerSettings* settings, uint32_t step, int32_t samples, const SampleSource& source,
                             int32_t probe, LayerMeasurement* measurements) {
  PMT_RETURN_IF_ERROR(check(settings, samples));
  const int32_t layers = memory_.setup.layer_count;
  for (int32_t i = 0; i < layers; ++i) {
    const Layer& layer = memory_.layers[i];
    memory_.settings[i] = {layer.queries, static_cast<int16_t>(layer.mu_weight), layer.mu_node, layer.estimator};
    apply(i, settings[i]);
  }
  losses_.lay_out();
  const Status status = QueryPass(memory_, losses_, samples, source).run(step | probe_streams);
  for (int32_t i = 0; status.ok() && i < layers; ++i) {
    const Estimator estimator = memory_.layers[i].estimator;
    if (estimator == Estimator::closed_form) continue;
    measurements[i].variance[static_cast<uint32_t>(estimator)][probe] = variance(i, samples);
  }
  for (int32_t i = 0; i < layers; ++i) apply(i, memory_.settings[i]);
  losses_.lay_out();
  return status;
}

// One forward of each sample, on the first worker.
Status Probe::measure_inputs(int32_t samples, const SampleSource& source, LayerMeasurement* measurements) {
  const TrainerSetup& setup = memory_.setup;
  if (samples < 1 || samples > setup.batch) return {Code::batch_size};
  for (int32_t i = 0; i < setup.layer_count; ++i) measurements[i].input_squares = 0.0f;
  for (int32_t n = 0; n < samples; ++n) {
    Target target = {0};
    int32_t done = 0;
    PMT_RETURN_IF_ERROR(memory_.read_sample(source, n, 0, &target));
    if (setup.executor.stopping(setup.executor.context, 0)) return {Code::cancelled};
    for (int32_t i = 0; i < setup.layer_count; ++i) {
      const Layer& layer = memory_.layers[i];
      if (layer.estimator == Estimator::closed_form) continue;
      forward(memory_.network, memory_.plan, memory_.workspaces[0], 1, done, layer.op + 1);
      done = layer.op + 1;
      const int64_t squares = free_input_squares(memory_.context, memory_.workspaces[0], layer);
      measurements[i].input_squares += to_float(squares) / static_cast<float>(samples);
    }
  }
  return {};
}

}  // namespace pmt
