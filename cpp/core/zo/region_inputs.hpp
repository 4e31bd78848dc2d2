// The inputs of pooled node perturbation, which decide the error of its gradient.
#pragma once

#include "core/zo/gradient.hpp"

namespace pmt {

// Sums over the channels and regions of a layer in which a node is free; dead channels have none.
struct RegionInputs {
  float mean_squares;  // of the mean input patch (zero point removed) of the free nodes there: the sum over its taps
  float columns;       // how many such channels and regions there are
};

// Of the rows of a whole plane, whose layer has its regions set. `sums` has room for patch_taps().
RegionInputs region_inputs(const StepContext& context, const Layer& layer, const LayerRows& rows, int32_t* sums);

// Taps of a channel's patch.
inline int32_t patch_taps(const Layer& layer) { return layer.weight_count / layer.channels; }

}  // namespace pmt
