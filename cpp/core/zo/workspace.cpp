#include "core/zo/workspace.hpp"

#include "core/base/arithmetic.hpp"
#include "core/zo/estimated.hpp"

namespace pmt {
namespace {

struct Sizes {
  int32_t scratch = 0, weight_tile = 0, channels = 0, signs = 0, sign_sums = 0, streams = 0, queries = 0, images = 1,
          channel_values = 0;
};

void grow(int32_t& size, int32_t needed) { size = size < needed ? needed : size; }

// Patches of int16 for the gradient's outer products; depthwise layers do without.
int32_t patch_bytes(const Network& network, int32_t index) {
  const OpRecord& op = network.model->op(index);
  if (!has_weights(op)) return 0;
  const int32_t taps = weight_count(*network.model, op) / network.model->output_of(op).channels;
  if (op.kind == OpKind::depthwise_conv2d) return 0;
  return 2 * taps * network.kernels->outer_positions;
}

void add_weight_perturbation(Sizes& sizes, const WorkspaceSetup& setup, const Layer& layer) {
  const Network& network = *setup.network;
  const OpRecord& op = network.model->op(layer.op);
  const bool weights = setup.options->train_weights != 0;
  grow(sizes.signs, layer.channels);
  grow(sizes.sign_sums, weights || layer.channels > gradient_chunk ? gradient_chunk : layer.channels);
  if (!weights) return;
  const int32_t tile =
      weight_tile_channels(network, *setup.plan, layer, *setup.options) * (layer.weight_count / layer.channels);
  if (packs(*network.kernels)) {
    grow(sizes.weight_tile, static_cast<int32_t>(network.kernels->packed_bytes(op_shape(*network.model, op))));
    grow(sizes.signs, tile);
  } else if (!setup.plan->is_compact() || planned_tile_bytes(network, layer, *setup.options) == 0) {
    grow(sizes.weight_tile, tile);
  }
  grow(sizes.signs, node_chunk);
}

void add_queries(Sizes& sizes, const WorkspaceSetup& setup, const Layer& layer) {
  grow(sizes.streams, layer.queries);
  const int32_t at_once = queries_at_once(*setup.plan, layer, setup.query_bytes);
  grow(sizes.images, logit_rows(*setup.options, layer, at_once));
  if (setup.plan->query_memory() == QueryMemory::apart) {
    grow(sizes.queries, at_once * setup.plan->query_bytes(layer.op));
  }
}

void add_pooled(Sizes& sizes, const Layer& layer) {
  grow(sizes.channel_values, layer.channels);
  grow(sizes.sign_sums, layer.channels < gradient_chunk ? layer.channels : gradient_chunk);
}

void add_layer(Sizes& sizes, const WorkspaceSetup& setup, const Layer& layer) {
  const Network& network = *setup.network;
  if (setup.options->train_weights != 0) grow(sizes.scratch, scratch_bytes(network, layer.op));
  grow(sizes.channels, round_up(layer.channels, network.kernels->channel_multiple));
  add_queries(sizes, setup, layer);
  if (is_estimated(layer, Estimator::weight_perturbation)) {
    add_weight_perturbation(sizes, setup, layer);
  } else {
    const int32_t nodes = node_positions(network, *setup.plan, layer) * layer.channels;
    grow(sizes.signs, nodes > node_chunk ? nodes : node_chunk);
    grow(sizes.sign_sums, nodes);
  }
  if (is_estimated(layer, Estimator::pooled_perturbation)) add_pooled(sizes, layer);
}

// Channels at once of a layer that does not stream.
int32_t tile_channels(const Network& network, const Layer& layer, const TrainerOptions& options, bool compact) {
  const bool whole = network.model->op(layer.op).kind == OpKind::depthwise_conv2d || packs(*network.kernels);
  if (whole || options.train_weights == 0) return layer.channels;
  const int32_t bytes = compact ? compact_tile_bytes : host_tile_bytes;
  const int32_t channels = bytes / (layer.weight_count / layer.channels);
  return clamp(channels, 1, layer.channels);
}

}  // namespace

int32_t scratch_bytes(const Network& network, int32_t op) {
  const int32_t patches = round_up(patch_bytes(network, op), 16),
                kernel = op_scratch_bytes(network, network.model->op(op));
  return patches < kernel ? kernel : patches;
}

int32_t planned_tile_bytes(const Network& network, const Layer& layer, const TrainerOptions& options) {
  const bool moves = is_estimated(layer, Estimator::weight_perturbation) && options.train_weights != 0;
  const bool none = !moves || packs(*network.kernels) || options.scope == Scope::model_wise;
  return none ? 0 : tile_channels(network, layer, options, true) * (layer.weight_count / layer.channels);
}

int32_t weight_tile_channels(const Network& network, const Plan& plan, const Layer& layer,
                             const TrainerOptions& options) {
  return plan.streams(layer.op) ? layer.channels : tile_channels(network, layer, options, plan.is_compact());
}

int32_t node_positions(const Network& network, const Plan& plan, const Layer& layer) {
  const int32_t width = network.model->output_of(network.model->op(layer.op)).width;
  return plan.is_compact() ? clamp(node_chunk / layer.channels, 1, width) : width;
}

int32_t queries_at_once(const Plan& plan, const Layer& layer, int32_t bytes) {
  const bool none = is_estimated(layer, Estimator::closed_form);
  if (plan.query_memory() == QueryMemory::shared || none) return 1;
  return clamp(bytes / plan.query_bytes(layer.op), 1, layer.queries);
}

int32_t logit_rows(const TrainerOptions& options, const Layer& layer, int32_t at_once) {
  if (options.loss != Loss::function) return at_once;
  const int32_t rows = clamp(layer.queries, 1, most_waiting);
  return rows < at_once ? at_once : rows;
}

Workspace take_workspace(Arena& arena, const WorkspaceSetup& setup) {
  const Network& network = *setup.network;
  const Model& model = *network.model;
  const auto alignment = static_cast<size_t>(network.kernels->alignment);
  Sizes sizes;
  sizes.scratch = kernel_scratch_bytes(network);
  for (int32_t i = 0; i < setup.layer_count; ++i) add_layer(sizes, setup, setup.layers[i]);
  Workspace workspace = {};
  workspace.activations = arena.take<uint8_t>(MemoryPart::activations, setup.plan->bytes(), alignment);
  workspace.queries = setup.plan->query_memory() == QueryMemory::shared
                          ? workspace.activations
                          : arena.take<uint8_t>(MemoryPart::activations, sizes.queries, alignment);
  workspace.scratch = arena.take<uint8_t>(setup.plan->is_compact() ? 0 : sizes.scratch, alignment);
  // Perturbed weights are a query's, sums of signs a gradient's.
  grow(sizes.weight_tile, 4 * sizes.sign_sums);
  workspace.weight_tile = arena.take<int8_t>(sizes.weight_tile, alignment);
  workspace.bias_tile = arena.take<int32_t>(sizes.channels, alignment);
  workspace.signs = arena.take<int8_t>(sizes.signs, alignment);
  workspace.sign_sums = reinterpret_cast<int32_t*>(workspace.weight_tile);
  workspace.streams = arena.take<SignStream>(MemoryPart::tables, sizes.streams);
  workspace.channel_values = arena.take<int32_t>(sizes.channel_values);
  // In a compact plan the trainer keeps the head's gradient for every sample.
  workspace.head_gradient = arena.take<int32_t>(setup.plan->is_compact() ? 0 : model.classes());
  // Last: every forward pass writes it, so that a device can see how far its arena was used.
  workspace.logits = arena.take<float>(static_cast<int64_t>(model.classes()) * sizes.images);
  return workspace;
}

}  // namespace pmt
