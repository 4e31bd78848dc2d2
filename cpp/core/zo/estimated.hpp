// Questions about a layer's estimator, in a header of their own: few sources ask them.
#pragma once

#include "core/base/linked/estimators.hpp"
#include "core/base/linked/parts.hpp"
#include "core/zo/layer.hpp"

namespace pmt {

// Known while compiling where the estimator is not linked, or no other is.
inline bool is_estimated(const Layer& layer, Estimator estimator) {
  return is_part(linked::estimators, layer.estimator, estimator);
}

// Whether queries move a layer's output, and not its parameters.
inline bool perturbs_nodes(const Layer& layer) {
  return is_estimated(layer, Estimator::node_perturbation) || is_estimated(layer, Estimator::pooled_perturbation);
}

// Values in which a query moves a layer's nodes: one a node, or pooled, one a channel.
inline int32_t node_columns(const Layer& layer) {
  return is_estimated(layer, Estimator::pooled_perturbation) ? layer.channels : layer.node_count;
}

}  // namespace pmt
