// A whole network from the definitions of its ops.
#pragma once

#include <vector>

#include "core/image/model.hpp"
#include "reference/tensors.hpp"
#include "tests/linear_case.hpp"
#include "tests/training_run.hpp"

namespace pmt::tests {

// Parameters of one op, copied so that a test may perturb them.
struct OpParameters {
  std::vector<int8_t> weights;
  std::vector<int32_t> bias;
};

std::vector<OpParameters> parameters_of(const Model& model);

LinearCase linear_case(const Model& model, const OpRecord& op, const OpParameters& parameters,
                       const reference::Image& input);

reference::Image run_reference_op(const Model& model, int32_t index, const std::vector<OpParameters>& parameters,
                                  const std::vector<reference::Image>& tensors);

// All tensors for an image, by tensor index.
std::vector<reference::Image> run_reference(const Model& model, const std::vector<OpParameters>& parameters,
                                            const std::vector<int8_t>& image);

// The inputs of an op, one a sample.
std::vector<reference::Image> inputs_of(const Model& model, int32_t op, const Samples& samples);

// Logits of the last op from its input; its int8 output, scaled, where that is asked for or there
// is not a linear head.
std::vector<float> reference_logits(const Model& model, const std::vector<OpParameters>& parameters,
                                    const std::vector<reference::Image>& tensors, bool int8_logits);

}  // namespace pmt::tests
