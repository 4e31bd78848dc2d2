// The gradient of one layer from the differences of its queries' losses, in exact integers.
//
// Units: a weight's sum is 2^20 * (number of queries) * (number of samples) * mu times the gradient
// by that weight (weight perturbation), or by its node times (x - zero point) (node perturbation,
// closed form).
#pragma once

#include "core/zo/direction.hpp"
#include "core/zo/loss.hpp"

namespace pmt {

// Sums of a layer's output channels begin .. end-1 (all that it has, by default), laid out as a layer of
// these channels alone would be.
struct GradientSums {
  int64_t* weights;  // of the channels; null where biases alone are trained
  int64_t* bias;     // one per channel
  int32_t begin = 0;
  int32_t end = INT32_MAX;
  int64_t free_nodes = 0;  // of all channels and samples, where gradient-norm scaling counts them

  int32_t channels(const Layer& layer) const { return (end < layer.channels ? end : layer.channels) - begin; }
  // First sum of a channel's weights, and the stride between them.
  ChannelWeights of(const Model& model, const Layer& layer, int32_t channel) const;
};

// Rows of a layer's output and the rows of its input under them: a layer of its own. A fully connected
// layer has one row, and one position.
struct LayerRows {
  const int8_t* input;
  const int8_t* output;
  OpShape shape;
};

// Input and output of a layer, once the main pass has run it.
LayerRows main_rows(const StepContext& context, const Workspace& workspace, const Layer& layer);

// Weight perturbation: adds sum_q difference[q] * signs_q for one sample (or for the batch, where
// it shares its perturbations).
void add_weight_gradient(const StepContext& context, const Workspace& workspace, const Layer& layer, uint32_t sample,
                         const int32_t* differences, const GradientSums& sums);

// A share is 2^share_bits times a node's, so that one of many does not round to nothing.
constexpr int32_t share_bits = 6;

// Pooled node perturbation: the gradient by all nodes of a channel together, shared out evenly to those that no
// clamp holds. Times the input patches, that is the weights' gradient by the mean patch of the plane: the chain rule
// without the covariance of node gradients and inputs over the positions.
class PooledGradient {
 public:
  PooledGradient(const StepContext& context, const Workspace& workspace, const Layer& layer);

  // Counts free nodes; each row once.
  void count(const LayerRows& rows);

  // Turns the counts in workspace.channel_values into one sample's shares; `directions` are open at the first node.
  void share(DirectionSums& directions) const;

 private:
  const StepContext& context_;
  const Workspace& workspace_;
  const Layer& layer_;
};

// Node perturbation, paper Eq. 12 and 13, position by position: the node gradient, masked where the
// output is saturated, times the input patches. Rows come in order, each once. `directions` are open at the first
// node; pooled, the node gradients are the shares of PooledGradient in workspace.channel_values.
class NodeGradient {
 public:
  NodeGradient(const StepContext& context, const Workspace& workspace, const Layer& layer, DirectionSums& directions,
               const GradientSums& sums);
  void add(const LayerRows& rows);

  // Nodes so far that no clamp holds.
  int64_t free_nodes() const { return free_nodes_; }

 private:
  void node_sums(int32_t begin, int32_t end);
  void add_positions(const LayerRows& rows, int32_t y, int32_t begin, int32_t end);

  const StepContext& context_;
  const Workspace& workspace_;
  const Layer& layer_;
  DirectionSums& directions_;
  const GradientSums sums_;
  int64_t free_nodes_ = 0;
};

// The head: the loss's gradient by its accumulators, one per class. All classes' weights have a part in it.
void head_gradient(const StepContext& context, const Workspace& workspace, const ScoredSample& sample,
                   int32_t* gradient);

// That gradient times the input. Both need the main pass up to the head's input.
void add_head_product(const StepContext& context, const Workspace& workspace, const Layer& layer,
                      const int32_t* gradient, const GradientSums& sums);

}  // namespace pmt
