// The update of a whole layer at once.
#pragma once

#include "core/zo/update.hpp"

namespace pmt::tests {

// Returns the number of weights that changed.
inline int32_t update_layer(const Estimation& estimation, const Layer& layer, const UpdateInput& input,
                            const GradientSums& sums) {
  LayerUpdate update(estimation, layer, input);
  if (update.looks()) update.look(sums);
  return update.apply(sums);
}

}  // namespace pmt::tests
