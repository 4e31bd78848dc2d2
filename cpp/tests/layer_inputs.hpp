// The inputs of a layer for samples, as the definitions compute them.
#pragma once

#include <vector>

#include "reference/tensors.hpp"
#include "tests/training_run.hpp"

namespace pmt::tests {

std::vector<reference::Image> inputs_of(const Model& model, int32_t op, const Samples& samples);

}  // namespace pmt::tests
