// What a layer reads of samples, as the definitions compute it.
#pragma once

#include <vector>

#include "reference/tensors.hpp"
#include "tests/training_run.hpp"

namespace pmt::tests {

std::vector<reference::Image> inputs_of(const Model& model, int32_t op, const Samples& samples);

}  // namespace pmt::tests
