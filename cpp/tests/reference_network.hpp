// A whole network from the definitions of its ops.
#pragma once

#include <vector>

#include "core/image/model.hpp"
#include "reference/tensors.hpp"

namespace pmt::tests {

// Parameters of one op, copied so that a test may perturb them.
struct OpParameters {
  std::vector<int8_t> weights;
  std::vector<int32_t> bias;
};

std::vector<OpParameters> parameters_of(const Model& model);

reference::Image run_reference_op(const Model& model, int32_t index, const std::vector<OpParameters>& parameters,
                                  const std::vector<reference::Image>& tensors);

// Runs ops begin .. end; tensors are by tensor index.
void run_reference(const Model& model, int32_t begin, const std::vector<OpParameters>& parameters,
                   std::vector<reference::Image>& tensors);

// Logits of the last op from its input; its int8 output, scaled, where that is asked for or there
// is not a linear head.
std::vector<float> reference_logits(const Model& model, const std::vector<OpParameters>& parameters,
                                    const std::vector<reference::Image>& tensors, bool int8_logits);

}  // namespace pmt::tests
