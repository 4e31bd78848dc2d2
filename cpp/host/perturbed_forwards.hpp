// Forward passes of samples with one layer perturbed by given integers. What comes before the layer runs once a
// sample, the rest of the network once a query, several queries at once.
#pragma once

#include <functional>

#include "core/zo/update.hpp"
#include "host/host_model.hpp"
#include "host/sample_array.hpp"

namespace pmt::host {

// Values of every query, or null: `stride` from a query to the next, `sample_stride` from a sample to the next, 0 where
// all samples share them.
template <typename T>
struct QueryValues {
  const T* values = nullptr;
  int64_t stride = 0, sample_stride = 0;

  explicit operator bool() const { return values != nullptr; }
  const T* of(int32_t query, int32_t sample) const { return values + query * stride + sample * sample_stride; }
};

// Added to a layer's weights (clipped to -127..127) and biases (to int32), or to its output before the next op reads it
// (clipped as the layer clips it).
struct LayerPerturbation {
  int32_t op;
  int32_t queries;
  QueryValues<int8_t> weights;
  QueryValues<int32_t> bias;
  QueryValues<int8_t> nodes;
  bool one_per_channel;  // nodes: one value a channel, the same at all positions
};

// logits: queries x samples x classes.
void perturbed_logits(const HostModel& model, const LayerPerturbation& perturbation, const SampleArray& samples,
                      bool int8_logits, int32_t threads, const std::function<bool()>& should_stop, float* logits);

// The core's update of a layer, of sums that another engine's losses gave: changes the parameters as a step does.
// `input` and `sums` are as the core's trainer has them, of all of the layer; the estimator is weight perturbation.
void update_layer(const HostModel& host, const TrainerOptions& options, int32_t op, uint32_t step,
                  const UpdateInput& input, const GradientSums& sums, const LayerStorage& parameters);

}  // namespace pmt::host
