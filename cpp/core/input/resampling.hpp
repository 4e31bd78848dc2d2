// Bilinear resampling to a network's input, in the integers of Pillow's, whose bytes it gives: a triangle as wide as
// an output pixel where the image becomes smaller. First along rows, then along columns.
#pragma once

#include "core/input/frame.hpp"

namespace pmt {

struct InputSize {
  int32_t height, width;
};

// `table` maps pixels to the network's input, 256 entries a channel. The frame may begin frame_lead() bytes behind
// the input: it is then overwritten by it, row by row, once it is read.
void resample(const Frame& frame, const InputSize& to, const int8_t* table, uint8_t* scratch, int8_t* input);
int64_t resample_bytes(const Frame& frame, const InputSize& to);

int64_t frame_lead(const Frame& frame, const InputSize& to);

}  // namespace pmt
