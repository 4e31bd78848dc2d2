#include "core/workspace.hpp"

#include "core/arithmetic.hpp"

namespace pmt {
namespace {

struct Sizes {
  int32_t scratch = 0, weight_tile = 0, channels = 0, signs = 0, streams = 0;
};

void grow(int32_t& size, int32_t needed) { size = size < needed ? needed : size; }

void add_layer(Sizes& sizes, const Model& model, const Layer& layer, const TrainerOptions& options) {
  const OpRecord& op = model.op(layer.op);
  const TensorRecord& out = model.output_of(op);
  const int32_t taps = layer.weight_count / layer.channels;
  // A patch of int16 for the gradient's outer product.
  const int32_t patch = op.kind == OpKind::depthwise_conv2d ? taps * model.input_of(op).channels : taps;
  grow(sizes.scratch, round_up(2 * patch, 16));
  grow(sizes.channels, layer.channels);
  grow(sizes.streams, options.queries);
  if (layer.estimator == Estimator::weight_perturbation) {
    const int32_t tile = weight_tile_channels(model, layer, options) * taps;
    grow(sizes.weight_tile, tile);
    grow(sizes.signs, tile);
    grow(sizes.signs, layer.channels);
    grow(sizes.signs, gradient_chunk);
  } else {
    grow(sizes.signs, out.width * out.channels);
  }
}

}  // namespace

int32_t weight_tile_channels(const Model& model, const Layer& layer, const TrainerOptions& options) {
  if (model.op(layer.op).kind == OpKind::depthwise_conv2d) return layer.channels;
  const int32_t channels = options.weight_tile_bytes / (layer.weight_count / layer.channels);
  return clamp(channels, 1, layer.channels);
}

Workspace take_workspace(Arena& arena, const Network& network, const Plan& plan, const Layer* layers,
                         int32_t layer_count, const TrainerOptions& options) {
  const Model& model = *network.model;
  Sizes sizes;
  for (int32_t i = 0; i < model.op_count(); ++i) grow(sizes.scratch, op_scratch_bytes(network, model.op(i)));
  for (int32_t i = 0; i < layer_count; ++i) add_layer(sizes, model, layers[i], options);
  Workspace workspace = {};
  workspace.activations = arena.take<uint8_t>(plan.bytes());
  workspace.scratch = arena.take<uint8_t>(sizes.scratch);
  workspace.weight_tile = arena.take<int8_t>(sizes.weight_tile);
  workspace.bias_tile = arena.take<int32_t>(sizes.channels);
  workspace.signs = arena.take<int8_t>(sizes.signs);
  workspace.sign_sums = arena.take<int32_t>(sizes.signs);
  workspace.streams = arena.take<SignStream>(sizes.streams);
  workspace.logits = arena.take<float>(model.classes());
  workspace.head_gradient = arena.take<int32_t>(model.classes());
  return workspace;
}

}  // namespace pmt
