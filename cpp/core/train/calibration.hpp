// Queries, mu and estimator of every layer, from what a few perturbed forwards show.
//
// A probe is the variance over some queries of one sample's loss differences, V. Along directions
// of +-mu it is
//
//     V(mu) = G * mu^2 + R
//
// with G the squared norm of the sample's gradient by what is perturbed and R the rounding noise of
// int8 activations, which does not depend on mu. Two mu's give both. From them follow the mu at which
// R is at most half of the signal, the squared error of every estimator's gradient, and
// the queries by which the errors of all layers together are smallest.
//
// Pooled perturbation has a bias beside its variance: it drops the covariance of node gradients and inputs over
// the positions of a region. Were the two independent, the squared sum would be the product of their squared
// deviations; those follow from G by nodes and by regions, and from the squares of the inputs and of their means.
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

// The line through two variances. A slope that is not positive means no signal, an intercept that is
// negative no noise.
LossVariance loss_variance(const float* variances, const float* squared_mus);

// The smallest of `mus` (ascending) whose noise is at most half of its signal, else the last.
int32_t calibrated_mu(const LossVariance& variance, const int32_t* mus, const float* squared_mus, int32_t count);

// Mean square of a layer's weight perturbation at a mu, in the square of its mean weight step: mu^2,
// or less where channel_mu() is cut to its bounds.
float squared_weight_mu(const Model& model, const Layer& layer, int32_t mu);

// Squared error of the gradient by the real weights (live channels only) from one query of one
// sample, at a variance of the loss differences: weight perturbation, variance * sum over weights
// of 1 / (mu * s_w)^2; node perturbation, variance / mu^2 * (s_x / s_y)^2 * sum of the squared inputs, pooled
// of those of the mean patches.
float weight_error(const Model& model, const Layer& layer, int32_t mu, float variance);
float node_error(const Model& model, const Layer& layer, int32_t mu, float variance, float input_squares);

// Squared bias of one sample's pooled gradient by the real weights, from the squared norms of its gradient by
// output steps, node by node and region by region.
float pooled_bias(const Model& model, const Layer& layer, float node_norm, float region_norm,
                  const LayerMeasurement& measured, int32_t choice);

// The measurements, one entry for each layer.
struct CalibrationResult {
  LayerMeasurement* measurements;
  QueryDemand* demands;
  LayerSettings* settings;
  int64_t forwards, macs;  // of the probes
};

// Settings of every layer by the trainer's options, from `samples` samples; nothing is changed. Only
// what the options need is probed: all candidates for the rule `measured`, both mu's for
// `calibrated`. The probes draw from streams of their own, so that the step's queries are fresh.
// The trainer was opened with `probing`.
Status calibrate(Trainer& trainer, uint32_t step, int32_t samples, const SampleSource& source,
                 CalibrationResult& result);

}  // namespace pmt
