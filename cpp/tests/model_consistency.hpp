// The conditions that a model accepted by open() must meet, checked in another way than open() does.
#pragma once

#include "core/image/model.hpp"

namespace pmt::tests {

// True when every op's geometry, order, data and clamp fit together.
bool is_consistent(const Model& model, size_t image_bytes);

}  // namespace pmt::tests
