// Measured gradient-norm scaling: how much of a layer's gradient is noise of its estimate, and the
// factor that makes the squared error smallest, 1 - that share (James-Stein shrinkage).
//
// A sum over queries of difference * sign has, beside the gradient, the variance of the sum of the
// squared differences, in every one of its elements. So the noise in the squared norm of a layer's
// sums is expected to be
//   weight perturbation: (d - 1) * sum over queries of difference^2, d weights (or biases, if they
//                        are trained alone);
//   node perturbation:   the same by sample, times free_input_squares() instead of d - 1: the chain
//                        rule multiplies each node's noise with the inputs of its weights (of which only
//                        a share is active where gradients are sparse).
// On a loss that is linear in the perturbation the factor is the optimal one of each estimator: for
// Q independent queries Q / (Q + d - 1), for queries that differ by sample the one between that and
// NQ / (NQ + d - 1) that the samples' gradients call for. Rounding noise is counted too.
//
// All that holds for independent directions. Orthogonal ones have less of what a linear loss adds, and
// complete ones nothing: direction_noise(). Rounding noise is the same for all, and counts for as little
// then. A pair has one difference, that of its two losses.
#pragma once

#include "core/zo/gradient.hpp"

namespace pmt {

// Sum over a sample's directions of difference^2.
int64_t difference_squares(const TrainerOptions& options, const int32_t* differences, int32_t queries);

// Noise of a layer's directions, as a share of that of as many independent ones. A running index counts as
// if every sample began anew: what samples have in common has less noise yet.
float direction_noise(const StepContext& context, const Layer& layer);

// Sum over the output's positions in the main pass, the channels that are neither dead nor at a clamp
// there, and the weights of each, of the squared input (zero point removed).
int64_t free_input_squares(const StepContext& context, const Layer& layer, const LayerRows& rows);

// The same of the main pass in the workspace.
int64_t free_input_squares(const StepContext& context, const Workspace& workspace, const Layer& layer);

// The same without inputs, for biases: the number of those nodes.
int64_t free_nodes(const StepContext& context, const Layer& layer, const LayerRows& rows);

// Squared norm of the sums of what is trained in the live channels: of the weights, or of the biases
// if they are trained alone. In units of loss_one^2, as below. `before`: of the channels before the sums'.
float squared_norm(const StepContext& context, const Layer& layer, const GradientSums& sums, float before = 0.0f);

// Elements whose squares squared_norm() sums up; of sparse ones as many as are expected in live channels.
int32_t measured_elements(const StepContext& context, const Layer& layer);

// Squared differences as a float in units of loss_one^2.
float in_squared_losses(int64_t difference_squares);

// Mean of the share so far and this step's, which is at most 2 so that no single step rules; the first
// step's is taken as it is.
float smoothed_noise(float share, float noise, float norm, float memory, int32_t updates);

}  // namespace pmt
