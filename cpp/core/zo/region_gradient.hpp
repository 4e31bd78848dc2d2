// Pooled node perturbation: the gradient by all nodes of a channel in a region together, shared out evenly to
// those that no clamp holds. Times the input patches, that is the weights' gradient by the mean patch of the
// region: the chain rule without the covariance of node gradients and inputs over the region's positions.
#pragma once

#include "core/zo/gradient.hpp"

namespace pmt {

// A share is 2^share_bits times a node's, so that one of many does not round to nothing.
constexpr int32_t share_bits = 6;

class RegionGradient {
 public:
  RegionGradient(const StepContext& context, const Workspace& workspace, const Layer& layer);

  // Counts free nodes. Rows come in order, each once.
  void count(const LayerRows& rows);

  // Turns the counts in workspace.region_values into one sample's shares; `directions` are open at the first node.
  void share(DirectionSums& directions) const;

 private:
  const StepContext& context_;
  const Workspace& workspace_;
  const Layer& layer_;
  const Regions regions_;
  int32_t y_ = 0;
};

}  // namespace pmt
