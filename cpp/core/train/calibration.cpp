#include "core/train/calibration.hpp"

#include "core/base/arithmetic.hpp"

namespace pmt {
namespace {

constexpr int32_t mu_choices = 4;
constexpr int32_t choices[mu_choices] = {1, 2, 4, 8};

class Calibration {
 public:
  Calibration(Trainer& trainer, uint32_t step, int32_t samples, const SampleSource& source, CalibrationResult& result)
      : trainer_(trainer),
        options_(*trainer.context().options),
        model_(*trainer.network().model),
        step_(step),
        samples_(samples),
        source_(source),
        result_(result) {}

  Status run() {
    result_.forwards = result_.macs = 0;
    for (int32_t i = 0; i < count(); ++i) {
      result_.measurements[i] = {};
      result_.settings[i] = default_settings(model_, layer(i).op, options_);
    }
    PMT_RETURN_IF_ERROR(probe_inputs());
    if (options_.rule == EstimatorRule::measured) {
      for (int32_t one = 0; one < most_candidates; ++one) PMT_RETURN_IF_ERROR(probe_mus(one));
    } else {
      PMT_RETURN_IF_ERROR(probe_mus(own));
    }
    for (int32_t i = 0; i < count(); ++i) choose(i);
    if (options_.allocation == Allocation::variance) allocate();
    return {};
  }

 private:
  static constexpr int32_t own = -1;  // each layer's candidate by the options

  int32_t count() const { return trainer_.layer_count(); }
  const Layer& layer(int32_t index) const { return trainer_.layer(index); }
  bool exact(int32_t index) const { return result_.settings[index].estimator == Estimator::closed_form; }
  bool calibrated() const { return options_.mu == MuRule::calibrated; }

  int64_t suffix_macs(int32_t index) const {
    int64_t macs = 0;
    for (int32_t op = layer(index).op; op < model_.op_count(); ++op) macs += mac_count(model_, model_.op(op));
    return macs;
  }

  int64_t prefix_macs(int32_t end) const {
    int64_t macs = 0;
    for (int32_t op = 0; op < end; ++op) macs += mac_count(model_, model_.op(op));
    return macs;
  }

  Status probe_inputs() {
    PMT_RETURN_IF_ERROR(trainer_.probe().measure_inputs(samples_, source_, result_.measurements));
    result_.macs += samples_ * prefix_macs(layer(count() - 1).op + 1);
    return {};
  }

  // With one candidate for all layers, or each layer's own.
  Status probe_mus(int32_t candidate) {
    for (int32_t which = 0; which < (calibrated() ? 2 : 1); ++which) {
      PMT_RETURN_IF_ERROR(trainer_.probe().measure_losses(probed(candidate, which), step_, samples_, source_, which,
                                                          result_.measurements));
      int64_t sample = prefix_macs(model_.op_count());
      for (int32_t i = 0; i < count(); ++i) {
        if (exact(i)) continue;
        sample += options_.probe_queries * suffix_macs(i);
        result_.forwards += int64_t{samples_} * options_.probe_queries;
      }
      result_.macs += samples_ * sample;
    }
    return {};
  }

  // The settings to probe, in place of the result until choose() fills it in.
  const LayerSettings* probed(int32_t candidate, int32_t which) {
    for (int32_t i = 0; i < count(); ++i) {
      result_.settings[i] = default_settings(model_, layer(i).op, options_);
      result_.settings[i].queries = options_.probe_queries;
      if (exact(i)) continue;
      if (candidate != own) take(candidate, result_.settings[i]);
      if (calibrated())
        result_.settings[i].mu_weight = result_.settings[i].mu_node = static_cast<int16_t>(probe_mu[which]);
    }
    return result_.settings;
  }

  void take(int32_t candidate, LayerSettings& settings) const {
    if (candidate < by_region) {
      settings.estimator = candidate == by_weight ? Estimator::weight_perturbation : Estimator::node_perturbation;
    } else {
      settings.estimator = Estimator::pooled_perturbation;
      settings.regions = region_choice(options_, candidate - by_region);
    }
  }

  // Mu of a candidate, the variance of a gradient from one query of a batch, and its squared bias. One whose losses
  // do not vary, or whose nodes all stand at a clamp, sees nothing of the gradient.
  struct Choice {
    int32_t candidate, mu;
    float error, bias;
    bool sees;
    float total(int32_t queries) const { return error / static_cast<float>(queries) + bias; }
  };

  float squared_mu(int32_t index, int32_t candidate, int32_t mu) const {
    if (candidate == by_weight) return squared_weight_mu(model_, layer(index), mu);
    return static_cast<float>(mu * mu);
  }

  // Through both probes, or through zero where there is one.
  LossVariance variance_line(int32_t index, int32_t candidate) const {
    const float* variances = result_.measurements[index].variance[candidate];
    if (!calibrated()) return {variances[0] / squared_mu(index, candidate, fixed_mu(candidate)), 0.0f};
    const float squares[2] = {squared_mu(index, candidate, probe_mu[0]), squared_mu(index, candidate, probe_mu[1])};
    return loss_variance(variances, squares);
  }

  int32_t fixed_mu(int32_t candidate) const { return candidate == by_weight ? options_.mu_weight : options_.mu_node; }

  int32_t chosen_mu(int32_t index, int32_t candidate, const LossVariance& line) const {
    if (!calibrated()) return fixed_mu(candidate);
    float squares[mu_choices];
    for (int32_t i = 0; i < mu_choices; ++i) squares[i] = squared_mu(index, candidate, choices[i]);
    return calibrated_mu(line, choices, squares, mu_choices);
  }

  Choice choice(int32_t index, int32_t candidate) const {
    const LayerMeasurement& measured = result_.measurements[index];
    const LossVariance line = variance_line(index, candidate);
    const int32_t mu = chosen_mu(index, candidate, line);
    const float variance = line.at(squared_mu(index, candidate, mu));
    const bool pooled = candidate >= by_region;
    const float squares = pooled ? measured.regions[candidate - by_region].mean_squares : measured.input_squares;
    const float error = candidate == by_weight ? weight_error(model_, layer(index), mu, variance)
                                               : node_error(model_, layer(index), mu, variance, squares);
    const bool compares = options_.rule == EstimatorRule::measured;
    const float bias = pooled && compares ? pooled_bias(model_, layer(index), variance_line(index, by_node).signal,
                                                        line.signal, measured, candidate - by_region)
                                          : 0.0f;
    const Estimator kind = candidate == by_weight ? Estimator::weight_perturbation : Estimator::node_perturbation;
    const auto sets = static_cast<float>(trainer_.perturbation_sets(kind));
    return {candidate, mu, error / sets, bias / sets, line.signal > 0.0f && error > 0.0f};
  }

  // Of those that see something the one with the least error; else the options' own.
  Choice best_choice(int32_t index) const {
    const LayerSettings& own = result_.settings[index];
    Choice best = choice(index, candidate_of(options_, own.estimator, own.regions));
    for (int32_t one = 0; one < most_candidates; ++one) {
      const Choice other = choice(index, one);
      const bool better = other.total(options_.queries) < best.total(options_.queries);
      if (other.sees && (better || !best.sees)) best = other;
    }
    return best;
  }

  void choose(int32_t index) {
    LayerSettings& settings = result_.settings[index];
    settings = default_settings(model_, layer(index).op, options_);
    result_.demands[index] = {0.0f, 0, 0};
    if (exact(index)) return;
    const bool compares = options_.rule == EstimatorRule::measured;
    const Choice best =
        compares ? best_choice(index) : choice(index, candidate_of(options_, settings.estimator, settings.regions));
    take(best.candidate, settings);
    (best.candidate == by_weight ? settings.mu_weight : settings.mu_node) = static_cast<int16_t>(best.mu);
    result_.demands[index] = {best.error, suffix_macs(index), 0};
  }

  void allocate() {
    allocate_queries(result_.demands, count(), options_.queries);
    for (int32_t i = 0; i < count(); ++i) result_.settings[i].queries = result_.demands[i].queries;
  }

  Trainer& trainer_;
  const TrainerOptions& options_;
  const Model& model_;
  const uint32_t step_;
  const int32_t samples_;
  const SampleSource& source_;
  CalibrationResult& result_;
};

}  // namespace

LossVariance loss_variance(const float* variances, const float* squared_mus) {
  const float signal = (variances[1] - variances[0]) / (squared_mus[1] - squared_mus[0]);
  if (!is_finite(signal) || signal <= 0.0f) return {0.0f, variances[0]};
  const float noise = variances[0] - signal * squared_mus[0];
  return {signal, noise < 0.0f ? 0.0f : noise};
}

int32_t calibrated_mu(const LossVariance& variance, const int32_t* mus, const float* squared_mus, int32_t count) {
  for (int32_t i = 0; i < count; ++i) {
    const float signal = variance.signal * squared_mus[i];
    if (signal > 0.0f && variance.noise <= 0.5f * signal) return mus[i];
  }
  return mus[count - 1];
}

float squared_weight_mu(const Model& model, const Layer& layer, int32_t mu) {
  if (layer.mean_scale <= 0.0f) return static_cast<float>(mu * mu);
  Layer probed = layer;
  probed.mu_weight = mu;
  const float* scales = model.weight_scales(model.op(layer.op));
  float sum = 0.0f;
  int32_t live = 0;
  for (int32_t c = 0; c < layer.channels; ++c) {
    if (channel_is_dead(scales[c])) continue;
    const float moved = static_cast<float>(channel_mu(model, probed, c)) * scales[c] / layer.mean_scale;
    sum += moved * moved;
    ++live;
  }
  return sum / static_cast<float>(live);
}

float weight_error(const Model& model, const Layer& layer, int32_t mu, float variance) {
  Layer probed = layer;
  probed.mu_weight = mu;
  const float* scales = model.weight_scales(model.op(layer.op));
  float sum = 0.0f;
  for (int32_t c = 0; c < layer.channels; ++c) {
    if (channel_is_dead(scales[c])) continue;
    const float moved = static_cast<float>(channel_mu(model, probed, c)) * scales[c];
    sum += 1.0f / (moved * moved);
  }
  return variance * sum * static_cast<float>(layer.weight_count / layer.channels);
}

float node_error(const Model& model, const Layer& layer, int32_t mu, float variance, float input_squares) {
  const OpRecord& op = model.op(layer.op);
  const float ratio = model.input_of(op).scale / (static_cast<float>(mu) * model.output_of(op).scale);
  return variance * (ratio * ratio) * input_squares;
}

float pooled_bias(const Model& model, const Layer& layer, float node_norm, float region_norm,
                  const LayerMeasurement& measured, int32_t choice) {
  const RegionInputs& regions = measured.regions[choice];
  if (regions.columns <= 0.0f || measured.nodes <= 0.0f) return 0.0f;
  const OpRecord& op = model.op(layer.op);
  const float ratio = model.input_of(op).scale / model.output_of(op).scale;
  const float gradients = node_norm - region_norm * regions.columns / measured.nodes;
  const float inputs = measured.input_squares / measured.nodes - regions.mean_squares / regions.columns;
  return gradients > 0.0f && inputs > 0.0f ? ratio * ratio * gradients * inputs : 0.0f;
}

Status calibrate(Trainer& trainer, uint32_t step, int32_t samples, const SampleSource& source,
                 CalibrationResult& result) {
  return Calibration(trainer, step, samples, source, result).run();
}

}  // namespace pmt
