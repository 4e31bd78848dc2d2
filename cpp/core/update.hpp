// From exact integer sums to new int8 weights and int32 biases, in place. Paper Eq. 11.
#pragma once

#include "core/gradient.hpp"
#include "core/update_memory.hpp"

namespace pmt {

struct UpdateInput {
  float learning_rate;  // or, with normalised steps, the root mean square of the update in steps
  int32_t samples;      // batch size
  // Perturbation sets that the sums ran over: samples, or 1 where the batch shared its own and the
  // differences were averaged.
  int32_t sample_sums;
  UpdateMemory memory = {};  // as the options need it
  float shrinkage = 1.0f;    // factor of the step; measured gradient-norm scaling
};

// Gradient of the mean loss by the stored integers of one channel: sum * factor.
struct ChannelFactors {
  float weight;
  float bias;
};
ChannelFactors gradient_factors(const Estimation& estimation, const Layer& layer, const UpdateInput& input,
                                int32_t channel);

// Gradient-norm scaling k / (k + d - 1) of k directions; k / d, at most 1, of orthogonal ones; 1 where it
// is off, measured, or the gradient is exact.
float gradient_norm_scaling(const Estimation& estimation, const Layer& layer, int32_t samples);

// Rounds an update in steps, either to the nearest integer (half to even) or up or down at random so
// that its mean is the update, cut to 1/65536 of a step; `random` holds 16 random bits.
int32_t round_update(float update, Rounding rounding, uint32_t random);

// Updates the layer; returns the number of weights that changed. Dead channels stay.
int32_t update_layer(const Estimation& estimation, const Layer& layer, const UpdateInput& input,
                     const GradientSums& sums);

}  // namespace pmt
