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

int32_t candidate_of(const TrainerOptions& options, Estimator estimator, int32_t regions) {
  if (estimator == Estimator::weight_perturbation) return by_weight;
  if (estimator == Estimator::node_perturbation) return by_node;
  const int32_t choices = estimator == Estimator::pooled_perturbation ? region_choices(options) : 0;
  for (int32_t k = 0; k < choices; ++k) {
    if (region_choice(options, k) == regions) return by_region + k;
  }
  return -1;
}

void Probe::apply(int32_t layer, const LayerSettings& settings) {
  Layer& probed = memory_.layers[layer];
  probed.estimator = settings.estimator;
  probed.queries = settings.queries;
  probed.mu_weight = settings.mu_weight;
  probed.mu_node = settings.mu_node;
  set_regions(*memory_.setup.model, probed, settings.regions);
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
    const bool exact = settings[i].estimator == Estimator::closed_form;
    if (!exact && candidate_of(memory_.options, settings[i].estimator, settings[i].regions) < 0) {
      return {Code::layer_regions, op};
    }
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
    const int32_t regions = layer.region_rows > layer.region_columns ? layer.region_rows : layer.region_columns;
    memory_.settings[i] = {layer.queries, static_cast<int16_t>(layer.mu_weight), layer.mu_node, layer.estimator,
                           regions};
    apply(i, settings[i]);
  }
  losses_.lay_out();
  const Status status = QueryPass(memory_, losses_, samples, source).run(step | probe_streams);
  for (int32_t i = 0; status.ok() && i < layers; ++i) {
    const Estimator estimator = memory_.layers[i].estimator;
    if (estimator == Estimator::closed_form) continue;
    const int32_t candidate = candidate_of(memory_.options, estimator, settings[i].regions);
    measurements[i].variance[candidate][probe] = variance(i, samples);
  }
  for (int32_t i = 0; i < layers; ++i) apply(i, memory_.settings[i]);
  losses_.lay_out();
  return status;
}

// One forward of each sample, on the first worker.
Status Probe::measure_inputs(int32_t samples, const SampleSource& source, LayerMeasurement* measurements) {
  const TrainerSetup& setup = memory_.setup;
  if (!setup.probing) return {Code::arena_too_small};
  if (samples < 1 || samples > setup.batch) return {Code::batch_size};
  for (int32_t i = 0; i < setup.layer_count; ++i) {
    measurements[i].input_squares = measurements[i].nodes = 0.0f;
    for (RegionInputs& regions : measurements[i].regions) regions = {};
  }
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
      add_inputs(layer, 1.0f / static_cast<float>(samples), measurements[i]);
    }
  }
  return {};
}

void Probe::add_inputs(const Layer& layer, float share, LayerMeasurement& measurement) const {
  const StepContext& context = memory_.context;
  const Workspace& workspace = memory_.workspaces[0];
  const LayerRows rows = main_rows(context, workspace, layer);
  measurement.input_squares += share * to_float(free_input_squares(context, layer, rows));
  measurement.nodes += share * to_float(free_nodes(context, layer, rows));
  for (int32_t k = 0; k < region_choices(memory_.options); ++k) {
    const Layer pooled = pooled_layer(context.model(), layer, region_choice(memory_.options, k));
    const RegionInputs inputs = region_inputs(context, pooled, rows, workspace.region_values);
    measurement.regions[k].mean_squares += share * inputs.mean_squares;
    measurement.regions[k].columns += share * inputs.columns;
  }
}

}  // namespace pmt
