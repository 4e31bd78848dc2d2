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

  // Counts free nodes and, where the step's noise is measured, adds up patches. Rows come in order, each once.
  void count(const LayerRows& rows);

  // Sum over the layer's weights, or biases where these train alone, of the squared factor between the
  // gradient by a channel's region and that by the weight.
  int64_t factor_squares() const;

  // Turns the counts in workspace.region_values into one sample's shares; `directions` are open at the first node.
  void share(DirectionSums& directions) const;

 private:
  void add_patch(const LayerRows& rows, int32_t y, int32_t x, int32_t region);
  int64_t mean_squares(int32_t region, int32_t first, int32_t step) const;

  const StepContext& context_;
  const Workspace& workspace_;
  const Layer& layer_;
  const Regions regions_;
  int32_t* const patch_sums_;  // after the shares; null where sums_patches() says that there are none
  const int32_t taps_;         // of a patch: of one channel's weights or, depthwise, of all
  int32_t y_ = 0;
};

}  // namespace pmt
