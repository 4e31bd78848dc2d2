// The measurements that decide a layer's queries, mu and estimator, in double.
#pragma once

#include "reference/tensors.hpp"

namespace pmt::reference {

// Unbiased variance.
double variance(const Vector<double>& values);

// Sum over the output's positions, the channels that are neither dead nor at a clamp there, and the
// taps of each, of the squared input (zero point removed). A depthwise channel has taps of its own.
double free_input_squares(const Image& input, int32_t input_zero, const Window& window, const Image& nodes,
                          int32_t clamp_min, int32_t clamp_max, const Vector<float>& scales, bool depthwise);

// The squared mean input patch (zero point removed) of a channel's free nodes in a region, summed over the patch,
// the channels that are not dead and the regions; and the number of such channels and regions with a free node.
struct RegionInputs {
  double mean_squares, columns;
};
RegionInputs region_inputs(const Image& input, int32_t input_zero, const Window& window, const Image& nodes,
                           int32_t clamp_min, int32_t clamp_max, const Vector<float>& scales, size_t rows,
                           size_t columns, bool depthwise);

// Squared error of a gradient by the real weights of the live channels from one query:
// variance * sum over weights of 1 / (mu * scale)^2; mu is by channel, 0 where it is dead.
double weight_error(double variance, double taps, const Vector<int32_t>& channel_mu, const Vector<float>& scales);
double node_error(double variance, double mu, double input_scale, double output_scale, double input_squares);

// Squared bias of a pooled gradient where node gradients do not depend on the inputs: their squared deviations from
// the mean of their channel and region, in all, times those of an input patch, on average.
double pooled_bias(double node_norm, double region_norm, double input_scale, double output_scale, double nodes,
                   double input_squares, const RegionInputs& regions);

}  // namespace pmt::reference
