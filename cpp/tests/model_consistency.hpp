// The conditions that a model accepted by open() must meet, checked in another way than open() does.
#pragma once

#include "core/image/model.hpp"

namespace pmt::tests {

// True when every op's geometry, order, data and clamp fit together.
bool is_consistent(const Model& model, size_t image_bytes);

// Whether a pass takes little enough work for a test of many images.
bool small_enough_to_run(const Model& model);

}  // namespace pmt::tests
