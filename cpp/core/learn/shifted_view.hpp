// Views of an image: itself, and copies shifted to either side along both axes, with edges repeated.
#pragma once

#include "core/image/image_format.hpp"

namespace pmt {

constexpr int32_t shifted_views = 3;

// Turns the image into one of its views, in place; view 0 is itself.
void shift_image(const TensorRecord& shape, int32_t view, int8_t* image);

}  // namespace pmt
