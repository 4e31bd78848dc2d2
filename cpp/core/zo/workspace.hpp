// The memory of one worker in training: a forward's, and the buffers of queries and of a gradient.
#pragma once

#include "core/net/forward.hpp"
#include "core/zo/layer.hpp"

namespace pmt {

struct Workspace : Activations {
  int8_t* weight_tile;  // perturbed weights, packed where the kernels pack; see tile()
  int32_t* bias_tile;   // perturbed biases
  int8_t* signs;        // one tile, one row of nodes or one chunk of weights
  int32_t* sign_sums;   // one row of nodes or one chunk of weights
  SignStream* streams;  // one per direction
  // Pooled, one a channel: the counts of a sample's free nodes, which become its gradient's shares.
  int32_t* channel_values;
  int32_t* head_gradient;  // one per class; none in a compact plan

  // Pooled, one a channel: a query's; it is over before a gradient needs the place.
  int8_t* channel_signs() const { return reinterpret_cast<int8_t*>(channel_values); }

  // Perturbed weights of the layer that is queried. In a compact plan, among the activations.
  int8_t* tile(const Plan& plan) const {
    const int32_t offset = plan.tile_offset();
    return offset < 0 ? weight_tile : reinterpret_cast<int8_t*>(activations) + offset;
  }
};
template <>
inline constexpr size_t size_on_device<Workspace> = 44;

// Perturbed weights made at once; how many does not change a result.
constexpr int32_t host_tile_bytes = 1 << 16;
constexpr int32_t compact_tile_bytes = 1 << 12;

// Weights of a chunk of the weight gradient, and nodes of a query, or of the node gradient, at once.
constexpr int32_t gradient_chunk = 512;
constexpr int32_t node_chunk = 1024;

// Scratch of the kernels for an op, and of its gradient's outer products.
int32_t scratch_bytes(const Network& network, int32_t op);

// Perturbed weights of a layer, where it does not stream, that a compact plan has a place for. Bytes; 0 where
// they have a buffer of their own.
int32_t planned_tile_bytes(const Network& network, const Layer& layer, const TrainerOptions& options);

// Channels of a layer whose perturbed weights are made at once.
int32_t weight_tile_channels(const Network& network, const Plan& plan, const Layer& layer,
                             const TrainerOptions& options);

// Positions of a row whose node gradients are made at once: all, or as many as a device has room for.
int32_t node_positions(const Network& network, const Plan& plan, const Layer& layer);

// Queries of a layer that run at once in `bytes` of memory apart; 1 where they share the main pass's.
int32_t queries_at_once(const Plan& plan, const Layer& layer, int32_t bytes);

// Rows of logits that wait for their losses: those of the queries at once. For a loss function of the host's, whose
// every call is dear, up to this many.
constexpr int32_t most_waiting = 256;
int32_t logit_rows(const TrainerOptions& options, const Layer& layer, int32_t at_once);

struct WorkspaceSetup {
  const Network* network;
  const Plan* plan;
  const Layer* layers;
  int32_t layer_count;
  const TrainerOptions* options;
  int32_t query_bytes;  // of memory apart
};

Workspace take_workspace(Arena& arena, const WorkspaceSetup& setup);

}  // namespace pmt
