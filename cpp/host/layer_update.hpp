// The core's update of a layer, of sums that another engine's losses gave.
#pragma once

#include "core/zo/update.hpp"
#include "host/host_model.hpp"

namespace pmt::host {

// Changes the parameters as a step does. `input` and `sums` are as the core's trainer has them, of all of the
// layer; the estimator is weight perturbation.
void update_layer(const HostModel& host, const TrainerOptions& options, int32_t op, uint32_t step,
                  const UpdateInput& input, const GradientSums& sums, const LayerStorage& parameters);

}  // namespace pmt::host
