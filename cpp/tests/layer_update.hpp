// The update of a whole layer at once.
#pragma once

#include "core/zo/update.hpp"

namespace pmt::tests {

// Returns the number of weights that changed.
inline int32_t update_layer(const StepContext& context, const Layer& layer, const UpdateInput& input,
                            const GradientSums& sums) {
  LayerUpdate update(context, layer, input);
  if (update.needs_all_sums()) update.accumulate(sums);
  return update.apply(sums);
}

}  // namespace pmt::tests
