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
      PMT_RETURN_IF_ERROR(probe_mus(Estimator::weight_perturbation));
      PMT_RETURN_IF_ERROR(probe_mus(Estimator::node_perturbation));
    } else {
      PMT_RETURN_IF_ERROR(probe_mus(Estimator::closed_form));
    }
    for (int32_t i = 0; i < count(); ++i) choose(i);
    if (options_.allocation == Allocation::variance) allocate();
    return {};
  }

 private:
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

  // With one estimator for all layers, or (closed_form) each layer's own.
  Status probe_mus(Estimator all) {
    for (int32_t which = 0; which < (calibrated() ? 2 : 1); ++which) {
      PMT_RETURN_IF_ERROR(
          trainer_.probe().measure_losses(probed(all, which), step_, samples_, source_, which, result_.measurements));
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
  const LayerSettings* probed(Estimator all, int32_t which) {
    for (int32_t i = 0; i < count(); ++i) {
      result_.settings[i] = default_settings(model_, layer(i).op, options_);
      result_.settings[i].queries = options_.probe_queries;
      if (exact(i)) continue;
      if (all != Estimator::closed_form) result_.settings[i].estimator = all;
      if (calibrated())
        result_.settings[i].mu_weight = result_.settings[i].mu_node = static_cast<int16_t>(probe_mu[which]);
    }
    return result_.settings;
  }

  // Mu of an estimator and the squared error it gives.
  struct Choice {
    int32_t mu;
    float error;
  };

  float squared_mu(int32_t index, Estimator estimator, int32_t mu) const {
    if (estimator == Estimator::weight_perturbation) return squared_weight_mu(model_, layer(index), mu);
    return static_cast<float>(mu * mu);
  }

  Choice choice(int32_t index, Estimator estimator) const {
    const bool node = estimator == Estimator::node_perturbation;
    const LayerMeasurement& measured = result_.measurements[index];
    int32_t mu = node ? options_.mu_node : options_.mu_weight;
    float variance = measured.variance[node][0];
    if (calibrated()) {
      float squares[mu_choices];
      for (int32_t i = 0; i < mu_choices; ++i) squares[i] = squared_mu(index, estimator, choices[i]);
      const float probed_squares[2] = {squared_mu(index, estimator, probe_mu[0]),
                                       squared_mu(index, estimator, probe_mu[1])};
      const LossVariance line = loss_variance(measured.variance[node], probed_squares);
      mu = calibrated_mu(line, choices, squares, mu_choices);
      variance = line.at(squared_mu(index, estimator, mu));
    }
    const float error = node ? node_error(model_, layer(index), mu, variance, measured.input_squares)
                             : weight_error(model_, layer(index), mu, variance);
    return {mu, error / static_cast<float>(trainer_.perturbation_sets(estimator))};
  }

  void choose(int32_t index) {
    LayerSettings& settings = result_.settings[index];
    settings = default_settings(model_, layer(index).op, options_);
    if (exact(index)) return;
    const bool both = options_.rule == EstimatorRule::measured;
    if (both || settings.estimator == Estimator::weight_perturbation) {
      settings.mu_weight = static_cast<int16_t>(choice(index, Estimator::weight_perturbation).mu);
    }
    if (both || settings.estimator == Estimator::node_perturbation) {
      settings.mu_node = static_cast<int16_t>(choice(index, Estimator::node_perturbation).mu);
    }
    if (!both) return;
    const bool node =
        choice(index, Estimator::node_perturbation).error < choice(index, Estimator::weight_perturbation).error;
    settings.estimator = node ? Estimator::node_perturbation : Estimator::weight_perturbation;
  }

  void allocate() {
    for (int32_t i = 0; i < count(); ++i) {
      result_.demands[i] = {0.0f, 0, 0};
      if (exact(i)) continue;
      result_.demands[i] = {choice(i, result_.settings[i].estimator).error, suffix_macs(i), 0};
    }
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

Status calibrate(Trainer& trainer, uint32_t step, int32_t samples, const SampleSource& source,
                 CalibrationResult& result) {
  return Calibration(trainer, step, samples, source, result).run();
}

}  // namespace pmt
