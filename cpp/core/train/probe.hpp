// The measurement of layers for calibrate(): the spread of the losses of other queries, and the inputs.
#pragma once

#include "core/train/loss_tables.hpp"
#include "core/zo/region_inputs.hpp"

namespace pmt {

// What a layer may perturb: its weights, its nodes, or nodes pooled in the regions of region_choice().
constexpr int32_t by_weight = 0, by_node = 1, by_region = 2;
constexpr int32_t most_candidates = by_region + most_region_choices;

// The place of an estimator among them; -1 for one that is not probed.
int32_t candidate_of(const TrainerOptions& options, Estimator estimator, int32_t regions);

// 0 where a layer was not probed; means over the samples.
struct LayerMeasurement {
  // Variance of the losses over the queries, in squared nats, or that of the batch's mean loss where the batch
  // shares its perturbations. [candidate][probe].
  float variance[most_candidates][2];
  float input_squares;                        // free_input_squares()
  float nodes;                                // free_nodes()
  RegionInputs regions[most_region_choices];  // [choice]
};

class Probe {
 public:
  Probe(StepMemory& memory, LossTables& losses) : memory_(memory), losses_(losses) {}

  // Queries of a batch with other settings, in streams apart from those of the step: each layer's
  // variance[estimator][probe]. For setups that probe, with at most the options' probe_queries.
  Status measure_losses(const LayerSettings* settings, uint32_t step, int32_t samples, const SampleSource& source,
                        int32_t probe, LayerMeasurement* measurements);

  // Each layer's squared inputs, of nodes and of regions.
  Status measure_inputs(int32_t samples, const SampleSource& source, LayerMeasurement* measurements);

 private:
  Status check(const LayerSettings* settings, int32_t samples) const;
  void apply(int32_t layer, const LayerSettings& settings);
  float variance(int32_t layer, int32_t samples);
  void add_inputs(const Layer& layer, float share, LayerMeasurement& measurement) const;

  StepMemory& memory_;
  LossTables& losses_;
};

}  // namespace pmt
