#include "core/forward.hpp"

namespace pmt {

void forward(const Network& network, const Plan& plan, const Workspace& workspace, int32_t begin, int32_t end) {
  const Model& model = *network.model;
  for (int32_t i = begin; i < end; ++i) {
    const OpRecord& op = model.op(i);
    const int8_t* first = workspace.tensor(plan, Pass::main, op.input[0]);
    const int8_t* second = op.input[1] == no_tensor ? nullptr : workspace.tensor(plan, Pass::main, op.input[1]);
    run_op(network, i, first, second, workspace.tensor(plan, Pass::main, op.output), workspace.scratch);
  }
}

const int8_t* query_input(const Model& model, const Plan& plan, const Workspace& workspace, uint32_t tensor,
                          int32_t first) {
  const bool own = model.producer(tensor) >= first;
  return workspace.tensor(plan, own ? Pass::query : Pass::main, tensor);
}

void dequantise_logits(const Model& model, const int8_t* output, float* logits) {
  const TensorRecord& out = model.output();
  for (int32_t c = 0; c < model.classes(); ++c) {
    logits[c] = static_cast<float>(output[c] - out.zero_point) * out.scale;
  }
}

void head_logits(const Network& network, const Workspace& workspace, const HeadTensors& tensors, bool int8_logits) {
  const Model& model = *network.model;
  const int32_t last = model.op_count() - 1;
  if (!int8_logits && has_linear_head(model)) {
    run_logits(network, tensors.input[0], network.parameters[last], 0, model.classes(), workspace.logits);
    return;
  }
  run_op(network, last, tensors.input[0], tensors.input[1], tensors.output, workspace.scratch);
  dequantise_logits(model, tensors.output, workspace.logits);
}

void main_logits(const Network& network, const Plan& plan, const Workspace& workspace, bool int8_logits) {
  const Model& model = *network.model;
  const OpRecord& op = model.op(model.op_count() - 1);
  HeadTensors tensors = {{workspace.tensor(plan, Pass::main, op.input[0]), nullptr},
                         workspace.tensor(plan, Pass::main, op.output)};
  if (op.input[1] != no_tensor) tensors.input[1] = workspace.tensor(plan, Pass::main, op.input[1]);
  head_logits(network, workspace, tensors, int8_logits);
}

}  // namespace pmt
