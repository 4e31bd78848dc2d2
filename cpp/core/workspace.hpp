// The memory of one worker: activations as planned, and the buffers of a query and of a gradient.
#pragma once

#include "core/arena.hpp"
#include "core/layer.hpp"
#include "core/plan.hpp"

namespace pmt {

struct Workspace {
  uint8_t* activations;    // plan.bytes()
  uint8_t* scratch;        // of the kernels; patches in the gradient
  int8_t* weight_tile;     // perturbed weights
  int32_t* bias_tile;      // perturbed biases
  int8_t* signs;           // one tile, one row of nodes or one chunk of weights
  int32_t* sign_sums;      // as many
  SignStream* streams;     // one per query
  float* logits;           // one per class
  int32_t* head_gradient;  // one per class

  int8_t* tensor(const Plan& plan, Pass pass, uint32_t index) const {
    return reinterpret_cast<int8_t*>(activations) + plan.offset(pass, static_cast<int32_t>(index));
  }
};

// Weights of a chunk of the weight gradient.
constexpr int32_t gradient_chunk = 512;

// Channels of a layer whose perturbed weights are made at once.
int32_t weight_tile_channels(const Model& model, const Layer& layer, const TrainerOptions& options);

// `layers` may be empty: a workspace for inference.
Workspace take_workspace(Arena& arena, const Network& network, const Plan& plan, const Layer* layers,
                         int32_t layer_count, const TrainerOptions& options);

}  // namespace pmt
