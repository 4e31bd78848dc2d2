// Queries, mu and estimator of every layer, from what a few perturbed forwards show.
//
// A probe is the variance over some queries of one sample's loss differences, V. Along directions
// of +-mu it is
//
//     V(mu) = G * mu^2 + R
//
// with G the squared norm of the sample's gradient by what is perturbed and R the rounding noise of
// int8 activations, which does not depend on mu. Two mu's give both. From them follow the mu at which
// R is at most half of the signal, the squared error of either estimator's gradient, and
// the queries by which the errors of all layers together are smallest.
#pragma once

#include "core/train/allocation.hpp"
#include "core/train/trainer.hpp"

namespace pmt {

// The two mu's of a probe, of which the larger is in little danger of running into the clamps.
constexpr int32_t probe_mu[2] = {1, 4};

// V(mu) = signal * mu^2 + noise; neither is negative.
struct LossVariance {
  float signal, noise;
  float at(float squared_mu) const { return signal * squared_mu + noise; }
};

// The line through two variances. A slope that is not positive is no signal, an intercept that is
// negative no noise.
LossVariance loss_variance(const float* variances, const float* squared_mus);

// The smallest of `mus` (ascending) whose noise is at most half of its signal, else the last.
int32_t calibrated_mu(const LossVariance& variance, const int32_t* mus, const float* squared_mus, int32_t count);

// Mean square of a layer's weight perturbation at a mu, in the square of its mean weight step: mu^2,
// or less where channel_mu() is cut to its bounds.
float squared_weight_mu(const Model& model, const Layer& layer, int32_t mu);

// Squared error of the gradient by the real weights (live channels only) from one query of one
// sample, at a variance of the loss differences: weight perturbation, variance * sum over weights
// of 1 / (mu * s_w)^2; node perturbation, variance / mu^2 * (s_x / s_y)^2 * sum of the squared inputs.
float weight_error(const Model& model, const Layer& layer, int32_t mu, float variance);
float node_error(const Model& model, const Layer& layer, int32_t mu, float variance, float input_squares);

// The measurements, one entry for each layer.
struct CalibrationResult {
  LayerMeasurement* measurements;
  QueryDemand* demands;
  LayerSettings* settings;
  int64_t forwards, macs;  // of the probes
};

// Settings of every layer by the trainer's options, from `samples` samples; nothing is changed. Only
// what the options need is probed: both estimators for the rule `measured`, both mu's for
// `calibrated`. The probes draw from streams of their own, so that the step's queries are fresh.
// The trainer was opened with `probing`.
Status calibrate(Trainer& trainer, uint32_t step, int32_t samples, const SampleSource& source,
                 CalibrationResult& result);

}  // namespace pmt
