// Forward passes of many images, spread over threads.
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

}  // namespace pmt::host
