// The filters of an input stage and its resampling, in the plainest way.
#pragma once

#include "core/image/image_format.hpp"
#include "reference/tensors.hpp"

namespace pmt::reference {

using Pixels = xt::xtensor<uint8_t, 3>;  // [height][width][channels]

// The median of a 3x3 window, with edges repeated, in place of a value that is one of its extremes and further than
// `threshold` from it.
Pixels switching_median(const Pixels& image, int32_t threshold);

// With D the 4x4 integer transform of H.264, C = D B D^T of every 4x4 block B of every decorrelated plane. Each
// coefficient but the mean becomes m c - t / c, m its part of 1 in whole numbers, or 0 where it would pass that; what
// they stand for is summed over the blocks of a place, and rounded.
Pixels dct_shrinkage(const Pixels& image, int32_t threshold, NoiseModel noise);

// p + amount / 16 * (p - binomial mean), rounded half up.
Pixels sharpening(const Pixels& image, int32_t amount);

// mean + (p - mean) * deviation / (the channel's), with mean and deviation in 1/256.
Pixels standardization(const Pixels& image, int32_t deviation);

// p + bend / 16 * p (255 - p) / 255.
Pixels tone_curve(const Pixels& image, int32_t bend);

Pixels filtered(const Pixels& image, const FilterRecord& filter);

// Pillow's bilinear filter: weights in double precision, rounded to 22 bits; rows first.
Pixels resample(const Pixels& image, int32_t height, int32_t width);

}  // namespace pmt::reference
