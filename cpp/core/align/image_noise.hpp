// How much noise new images hold, told by their windows, and copies of them with still more of it: noise probes.
#pragma once

#include "core/align/window_statistics.hpp"

namespace pmt {

// The share 0..1 of a layer's variation between places that clean images do not have: 1 - roughness of clean /
// roughness of found, 0 where new images are as smooth as clean ones or smoother. Roughness is the mean squared
// difference, over twice the variance, of two places as far apart as the window goes. Both are values as WindowMeter
// finds them; the scale of a group does not matter, and groups without variation have no say.
float noise_share(const WindowGroups& groups, const float* clean, const float* found);

// The strength 0..1 of reliability, from the share of each group of images: by the mean less twice its standard error.
// One group alone tells nothing.
float reliability_strength(const float* shares, int32_t groups);

// Elements of scratch that add_noise_probe() takes.
int32_t noise_probe_sums(const TensorRecord& image);

// Writes an image with the details of another one on top, clamped to int8: what is left of it without the means of the
// squares around each pixel, as far as they lie inside. That is mostly noise, where it holds some. `probe` may be
// `image`.
void add_noise_probe(const TensorRecord& shape, const int8_t* image, const int8_t* other, int32_t* sums, int8_t* probe);

}  // namespace pmt
