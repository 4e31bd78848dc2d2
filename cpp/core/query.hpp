// One query: the loss of one sample with one layer (or, model-wise, every layer) perturbed.
#pragma once

#include "core/forward.hpp"

namespace pmt {

// What an estimate is made on; the same for every worker of a step.
struct Estimation {
  const Network* network;
  const Plan* plan;
  const TrainerOptions* options;
  const Layer* layers;
  int32_t layer_count;
  uint32_t step;
};

// Layers perturbed together: first .. last of Estimation::layers.
struct LayerRange {
  int32_t first, last;
};

struct QueryId {
  uint32_t query;
  uint32_t sample;
};

// The stream of a layer's perturbation in a query.
StreamId perturbation_stream(const Estimation& estimation, const Layer& layer, const QueryId& id, Purpose purpose);

// Needs the main pass up to and including the first layer's op. Fixed-point, see loss.hpp.
int32_t query_loss(const Estimation& estimation, const Workspace& workspace, const LayerRange& perturbed,
                   const QueryId& id, int32_t label);

}  // namespace pmt
