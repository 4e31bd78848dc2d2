// Forward passes of many images, and their input stage, spread over threads.
#pragma once

#include <functional>
#include <vector>

#include "host/host_model.hpp"

namespace pmt::host {

// logits: count x classes.
void batch_logits(const HostModel& model, const int8_t* images, int32_t count, bool int8_logits, int32_t threads,
                  const std::function<bool()>& should_stop, float* logits);

// The input of op `op`: count x elements of its first one.
void batch_inputs(const HostModel& model, const int8_t* images, int32_t count, int32_t op, int32_t threads,
                  const std::function<bool()>& should_stop, int8_t* inputs);

// Every tensor of one image, by tensor index.
std::vector<std::vector<int8_t>> activations(const HostModel& host, const int8_t* image);

// frames: count x frame_bytes(), which stay as they are; inputs: count x elements of the network's input. The model has
// a stage.
void batch_input_stage(const HostModel& model, const uint8_t* frames, int32_t count, int32_t threads,
                       const std::function<bool()>& should_stop, int8_t* inputs);

}  // namespace pmt::host
