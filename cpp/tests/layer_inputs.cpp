#include "tests/layer_inputs.hpp"

#include "tests/linear_case.hpp"
#include "tests/reference_network.hpp"

namespace pmt::tests {

std::vector<reference::Image> inputs_of(const Model& model, int32_t op, const Samples& samples) {
  const std::vector<OpParameters> parameters = parameters_of(model);
  std::vector<reference::Image> inputs;
  for (const std::vector<int8_t>& image : samples.images) {
    std::vector<reference::Image> tensors(static_cast<size_t>(model.tensor_count()));
    tensors[model.header().input_tensor] =
        image_of(image, {model.input().height, model.input().width, model.input().channels});
    run_reference(model, 0, parameters, tensors);
    inputs.push_back(tensors[model.op(op).input[0]]);
  }
  return inputs;
}

}  // namespace pmt::tests
