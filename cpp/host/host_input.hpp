// The input stage for many frames, spread over threads.
#pragma once

#include <functional>

#include "host/host_model.hpp"

namespace pmt::host {

// frames: count x frame_bytes(), which stay as they are; inputs: count x elements of the network's input. The model has
// a stage.
void batch_input_stage(const HostModel& model, const uint8_t* frames, int32_t count, int32_t threads,
                       const std::function<bool()>& should_stop, int8_t* inputs);

}  // namespace pmt::host
