// Queries: the loss of one sample with one layer (or, model-wise, every layer) perturbed. Several
// queries of a sample run at once, as a batch over the suffix of the network.
#pragma once

#include "core/net/forward.hpp"
#include "core/zo/loss.hpp"
#include "core/zo/workspace.hpp"

namespace pmt {

// Layers perturbed together: first .. last of StepContext::layers.
struct LayerRange {
  int32_t first, last;
};

struct QueryId {
  uint32_t query;
  uint32_t sample;
};

// `count` queries of one sample from `first`, at most queries_at_once().
struct QueryBatch {
  int32_t first, count;
  ScoredSample sample;
};

// Writes the logits of each query, from a row of the workspace's logits on. Needs the main pass up to and including
// the first layer's op.
void query_logits(const StepContext& context, const Workspace& workspace, const LayerRange& perturbed,
                  const QueryBatch& queries, int32_t row);

}  // namespace pmt
