// The inputs of pooled node perturbation, which decide the error of its gradient.
#pragma once

#include "core/zo/gradient.hpp"

namespace pmt {

// Sums over the channels and regions of a layer in which a clamp leaves a node alone; dead channels have none.
struct RegionInputs {
  float mean_squares;  // the squared mean input patch (zero point removed) under those nodes, summed over its taps
  float columns;       // how many such channels and regions there are
};

// Measures the rows of a whole plane, for a layer with its regions set. `sums` has room for patch_taps().
RegionInputs region_inputs(const StepContext& context, const Layer& layer, const LayerRows& rows, int32_t* sums);

// Taps of a channel's patch.
inline int32_t patch_taps(const Layer& layer) { return layer.weight_count / layer.channels; }

}  // namespace pmt
