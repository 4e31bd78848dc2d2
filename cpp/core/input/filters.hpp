// Filters of the input stage. Each changes a frame in place and keeps a few rows in `scratch`, 16-byte aligned: those
// of NeighborRows, where nothing else is said.
#pragma once

#include "core/image/image_format.hpp"
#include "core/input/frame.hpp"

namespace pmt {

// A pixel's value that is the largest or smallest of its 3x3 window, and further than `threshold` from their median,
// becomes the median: a switching median filter (Sun, Neuvo 1994). Channels are filtered alone.
void switching_median(const Frame& frame, int32_t threshold, uint8_t* scratch);

// All overlapping 4x4 blocks are transformed, their coefficients shrunk, and the blocks averaged: sliding DCT
// denoising (Yaroslavsky et al. 2001; Yu, Sapiro 2011) with the non-negative garrote, c - t^2 / c (Gao 1998). Colors
// are decorrelated before. `threshold`, in pixels of an orthonormal coefficient, is meant for a block of mean 128. The
// transform is the integer one of H.264. A frame has at least 4 rows and columns.
void dct_shrinkage(const Frame& frame, int32_t threshold, NoiseModel noise, uint8_t* scratch);
int64_t dct_shrinkage_bytes(const Frame& frame);

// Adds `amount` sixteenths of the difference between a pixel and the binomial mean of its 3x3 window: unsharp masking.
void sharpening(const Frame& frame, int32_t amount, uint8_t* scratch);

// Scales each channel about its mean to a standard deviation of `deviation` levels; one that varies by less than a
// level stays.
void standardization(const Frame& frame, int32_t deviation);

// Adds `bend` sixteenths of p (255 - p) / 255 to a pixel p: brighter or darker, with black and white in place.
void tone_curve(const Frame& frame, int32_t bend);

}  // namespace pmt
