#include "tests/reference_network.hpp"

#include "core/net/network.hpp"
#include "reference/ops.hpp"

namespace pmt::tests {
namespace {

Shape shape_of(const TensorRecord& tensor) { return {tensor.height, tensor.width, tensor.channels}; }

}  // namespace

LinearCase linear_case(const Model& model, const OpRecord& op, const OpParameters& parameters,
                       const reference::Image& input) {
  const TensorRecord& in = model.input_of(op);
  const TensorRecord& out = model.output_of(op);
  LinearCase linear;
  linear.shape = {op.kind, shape_of(in), out.channels, window_of(op), op.pad_bottom, op.pad_right};
  linear.out = shape_of(out);
  linear.input_zero = in.zero_point;
  linear.input = values_of(input);
  linear.weights = parameters.weights;
  const auto channels = static_cast<size_t>(out.channels);
  linear.to.bias = reference::Vector<int32_t>::from_shape({channels});
  linear.to.scales = reference::Vector<float>::from_shape({channels});
  for (size_t c = 0; c < channels; ++c) {
    linear.to.bias(c) = parameters.bias[c];
    linear.to.scales(c) = in.scale * model.weight_scales(op)[c] / out.scale;
  }
  linear.to.range = {out.zero_point, op.clamp_min, op.clamp_max};
  return linear;
}

namespace {

reference::Image run_mean(const Model& model, const OpRecord& op, const reference::Image& input) {
  const TensorRecord& in = model.input_of(op);
  const TensorRecord& out = model.output_of(op);
  const reference::OutputRange range = {out.zero_point, op.clamp_min, op.clamp_max};
  if (in.scale == out.scale && in.zero_point == out.zero_point) return reference::mean(input, range);
  return reference::rescaled_mean(input, in.zero_point, in.scale / out.scale, range);
}

}  // namespace

std::vector<OpParameters> parameters_of(const Model& model) {
  std::vector<OpParameters> parameters(static_cast<size_t>(model.op_count()));
  for (int32_t i = 0; i < model.op_count(); ++i) {
    const OpRecord& op = model.op(i);
    if (!has_weights(op)) continue;
    OpParameters& own = parameters[static_cast<size_t>(i)];
    own.weights.assign(model.weights(op), model.weights(op) + pmt::weight_count(model, op));
    own.bias.assign(model.bias(op), model.bias(op) + model.output_of(op).channels);
  }
  return parameters;
}

reference::Image run_reference_op(const Model& model, int32_t index, const std::vector<OpParameters>& parameters,
                                  const std::vector<reference::Image>& tensors) {
  const OpRecord& op = model.op(index);
  const reference::Image& input = tensors[op.input[0]];
  const TensorRecord& out = model.output_of(op);
  switch (op.kind) {
    case OpKind::add:
    case OpKind::concatenation: {
      const auto join = op.kind == OpKind::add ? reference::add : reference::concatenation;
      const TensorRecord &a = model.input_of(op, 0), &b = model.input_of(op, 1);
      return join({input, a.zero_point, a.scale}, {tensors[op.input[1]], b.zero_point, b.scale}, out.scale,
                  {out.zero_point, op.clamp_min, op.clamp_max});
    }
    case OpKind::average_pool:
      return reference::average_pool(input, window_of(op), shape_of(out), {op.clamp_min, op.clamp_max});
    case OpKind::max_pool:
      return reference::max_pool(input, window_of(op), shape_of(out), {op.clamp_min, op.clamp_max});
    case OpKind::mean: return run_mean(model, op, input);
    case OpKind::pad:
      return reference::pad(input, out.zero_point, {op.pad_top, op.pad_left, op.pad_bottom, op.pad_right});
    case OpKind::reshape: return reference::reshape(input, shape_of(out));
    default: {
      const LinearCase linear = linear_case(model, op, parameters[static_cast<size_t>(index)], input);
      return image_of(expected_output(linear), linear.out);
    }
  }
}

std::vector<reference::Image> run_reference(const Model& model, const std::vector<OpParameters>& parameters,
                                            const std::vector<int8_t>& image) {
  std::vector<reference::Image> tensors(static_cast<size_t>(model.tensor_count()));
  tensors[model.header().input_tensor] = image_of(image, shape_of(model.input()));
  for (int32_t i = 0; i < model.op_count(); ++i) {
    tensors[model.op(i).output] = run_reference_op(model, i, parameters, tensors);
  }
  return tensors;
}

std::vector<reference::Image> inputs_of(const Model& model, int32_t op, const Samples& samples) {
  const std::vector<OpParameters> parameters = parameters_of(model);
  std::vector<reference::Image> inputs;
  for (const std::vector<int8_t>& image : samples.images) {
    inputs.push_back(run_reference(model, parameters, image)[model.op(op).input[0]]);
  }
  return inputs;
}

std::vector<float> reference_logits(const Model& model, const std::vector<OpParameters>& parameters,
                                    const std::vector<reference::Image>& tensors, bool int8_logits) {
  const int32_t last = model.op_count() - 1;
  const OpRecord& op = model.op(last);
  if (int8_logits || !has_linear_head(model)) {
    const reference::Image& output = tensors[op.output];
    std::vector<float> logits;
    for (const int8_t value : output) {
      logits.push_back(static_cast<float>(value - model.output().zero_point) * model.output().scale);
    }
    return logits;
  }
  const OpParameters& own = parameters[static_cast<size_t>(last)];
  const LinearCase linear = linear_case(model, op, own, tensors[op.input[0]]);
  const size_t classes = own.bias.size();
  const auto weights = tensor_of<reference::DenseWeights>(own.weights, {classes, own.weights.size() / classes});
  auto scales = reference::Vector<float>::from_shape({classes});
  for (size_t c = 0; c < classes; ++c) scales(c) = model.input_of(op).scale * model.weight_scales(op)[c];
  const auto logits = reference::logits(tensors[op.input[0]], linear.input_zero, weights, linear.to.bias, scales);
  return {logits.begin(), logits.end()};
}

}  // namespace pmt::tests
