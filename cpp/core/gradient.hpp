// The gradient of one layer from the differences of its queries' losses, in exact integers.
//
// Units: a weight's sum is 2^20 * (number of queries) * (number of samples) * mu times the gradient
// by that weight (weight perturbation), or by its node times (x - zero point) (node perturbation,
// closed form).
#pragma once

#include "core/query.hpp"

namespace pmt {

struct GradientSums {
  int64_t* weights;  // layer.weight_count; null where biases alone are trained
  int64_t* bias;     // layer.channels
};

// Weight perturbation: adds sum_q difference[q] * signs_q for one sample (or for the batch, where
// it shares its perturbations).
void add_weight_gradient(const Estimation& estimation, const Workspace& workspace, const Layer& layer, uint32_t sample,
                         const int32_t* differences, const GradientSums& sums);

// Node perturbation, paper Eq. 12 and 13, row by row: the node gradient of an output row, masked where the
// output is saturated, times the input patches. Needs the main pass up to and including the layer.
void add_node_gradient(const Estimation& estimation, const Workspace& workspace, const Layer& layer, uint32_t sample,
                       const int32_t* differences, const GradientSums& sums);

// The head: (softmax - one_hot) times the input. Needs the main pass up to the head's input.
void add_head_gradient(const Estimation& estimation, const Workspace& workspace, const Layer& layer, int32_t label,
                       const GradientSums& sums);

}  // namespace pmt
