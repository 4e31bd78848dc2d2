// The measurement of layers for calibrate(): the spread of the losses of other queries, and the inputs.
#pragma once

#include "core/train/loss_tables.hpp"

namespace pmt {

// 0 where a layer was not probed.
struct LayerMeasurement {
  // Variance of the losses over the queries, in squared nats; mean over samples, or that of the batch's mean
  // loss where the batch shares its perturbations. [estimator][probe].
  float variance[2][2];
  float input_squares;  // free_input_squares(), mean over the samples
};

class Probe {
 public:
  Probe(StepMemory& memory, LossTables& losses) : memory_(memory), losses_(losses) {}

  // Queries of a batch with other settings, in streams apart from those of the step: each layer's
  // variance[estimator][probe]. For setups that probe, with at most the options' probe_queries.
  Status measure_losses(const LayerSettings* settings, uint32_t step, int32_t samples, const SampleSource& source,
                        int32_t probe, LayerMeasurement* measurements);

  // Each layer's input_squares.
  Status measure_inputs(int32_t samples, const SampleSource& source, LayerMeasurement* measurements);

 private:
  Status check(const LayerSettings* settings, int32_t samples) const;
  void apply(int32_t layer, const LayerSettings& settings);
  float variance(int32_t layer, int32_t samples);

  StepMemory& memory_;
  LossTables& losses_;
};

}  // namespace pmt
