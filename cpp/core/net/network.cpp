#include "core/net/network.hpp"

#include "core/base/arithmetic.hpp"

namespace pmt {
namespace {

Shape shape_of(const TensorRecord& t) { return {t.height, t.width, t.channels}; }

// Kernel scratch comes first, the scales after it.
int32_t kernel_scratch(const Network& network, const OpRecord& op) {
  return round_up(network.kernels->scratch_bytes(op_shape(*network.model, op)), 16);
}

float* scales_in(const Network& network, const OpRecord& op, void* scratch) {
  return reinterpret_cast<float*>(static_cast<uint8_t*>(scratch) + kernel_scratch(network, op));
}

struct ChannelRange {
  int32_t begin, end;
};

LinearArgs linear_args(const Model& model, const OpRecord& op, const OpImages& images, const LayerInput& parameters,
                       const ChannelRange& channels, const float* scales, void* scratch) {
  const TensorRecord& in = model.input_of(op);
  const TensorRecord& out = model.output_of(op);
  return {images.input[0],     images.output, batch_of(images),   images.shape.in, images.shape.out,
          images.shape.window, in.zero_point, out.zero_point,     op.clamp_min,    op.clamp_max,
          channels.begin,      channels.end,  parameters.weights, parameters.bias, scales,
          parameters.packed,   scratch};
}

void run_linear(const Kernels& kernels, OpKind kind, const LinearArgs& args) {
  (kernels.*definition_of(kind)->kernel)(args);
}

}  // namespace

void bind_parameters(const Model& model, Parameters* parameters) {
  for (int32_t i = 0; i < model.op_count(); ++i) {
    const OpRecord& op = model.op(i);
    parameters[i] = has_weights(op) ? Parameters{model.weights(op), model.bias(op)} : Parameters{};
  }
}

OpShape op_shape(const Model& model, const OpRecord& op) {
  return {op.kind, shape_of(model.input_of(op)), shape_of(model.output_of(op)), window_of(op)};
}

int32_t op_scratch_bytes(const Network& network, const OpRecord& op) {
  const bool computed = has_weights(op) && !packs(*network.kernels);
  const int32_t scales = computed ? 4 * network.model->output_of(op).channels : 0;
  return kernel_scratch(network, op) + round_up(scales, 16);
}

void output_scales(const Model& model, const OpRecord& op, float* scales) {
  const float input_scale = model.input_of(op).scale;
  const float output_scale = model.output_of(op).scale;
  const float* weight_scales = model.weight_scales(op);
  for (int32_t c = 0; c < model.output_of(op).channels; ++c) scales[c] = input_scale * weight_scales[c] / output_scale;
}

LayerInput layer_input(const Network& network, int32_t index) {
  const Parameters& parameters = network.parameters[index];
  if (network.packed == nullptr) return {parameters.weights, parameters.bias, nullptr};
  return {parameters.weights, network.packed[index].bias, network.packed[index].weights};
}

void run_layer(const Network& network, int32_t index, const OpImages& images, const LayerInput& parameters,
               int32_t channel_begin, int32_t channel_end, void* scratch) {
  const Model& model = *network.model;
  const OpRecord& op = model.op(index);
  const float* scales = network.packed != nullptr ? network.packed[index].scales : nullptr;
  if (scales == nullptr) {
    float* computed = scales_in(network, op, scratch);
    output_scales(model, op, computed);
    scales = computed;
  }
  run_linear(*network.kernels, op.kind,
             linear_args(model, op, images, parameters, {channel_begin, channel_end}, scales, scratch));
}

void run_requantized(const Network& network, int32_t index, const OpImages& images, const Requantization& to,
                     void* scratch) {
  const Model& model = *network.model;
  const OpRecord& op = model.op(index);
  LayerInput parameters = layer_input(network, index);
  parameters.bias = to.bias;
  LinearArgs args = linear_args(model, op, images, parameters, {0, model.output_of(op).channels}, to.scales, scratch);
  args.output_zero = 0;
  args.clamp_min = -127;
  args.clamp_max = 127;
  run_linear(*network.kernels, op.kind, args);
}

void run_op(const Network& network, int32_t index, const OpImages& images, void* scratch) {
  const Model& model = *network.model;
  const OpRecord& op = model.op(index);
  if (has_weights(op)) {
    run_layer(network, index, images, layer_input(network, index), 0, model.output_of(op).channels, scratch);
  } else {
    definition_of(op.kind)->run(*network.kernels, model.tensors_of(op), images);
  }
}

bool has_linear_head(const Model& model) {
  const OpRecord& op = model.op(model.op_count() - 1);
  // The lowest int8 value is zero behind a ReLU alone, whose bound no clamp then shows.
  if (op.clamp_min != -128 || op.clamp_max != 127 || model.output().zero_point == -128) return false;
  if (op.kind == OpKind::fully_connected) return true;
  const TensorRecord& in = model.input_of(op);
  const bool whole = op.kernel_h == in.height && op.kernel_w == in.width;
  const bool unpadded = op.pad_top == 0 && op.pad_left == 0 && op.pad_bottom == 0 && op.pad_right == 0;
  return op.kind == OpKind::conv2d && whole && unpadded;
}

void run_logits(const Network& network, const OpImages& images, const LayerInput& parameters, int32_t class_begin,
                int32_t class_end, void* scratch, float* logits) {
  const Model& model = *network.model;
  const OpRecord& op = model.op(model.op_count() - 1);
  const float* scales = network.packed != nullptr ? network.packed[model.op_count() - 1].logit_scales : nullptr;
  if (scales == nullptr) {
    float* computed = scales_in(network, op, scratch);
    for (int32_t c = class_begin; c < class_end; ++c) {
      computed[c] = model.input_of(op).scale * model.weight_scales(op)[c];
    }
    scales = computed;
  }
  OpImages inputs = images;
  inputs.output = nullptr;
  inputs.output_stride = 0;
  network.kernels->logits(linear_args(model, op, inputs, parameters, {class_begin, class_end}, scales, scratch),
                          logits);
}

}  // namespace pmt
