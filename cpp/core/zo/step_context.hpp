// The part of a step that is the same for every query, sample and worker.
#pragma once

#include "core/net/network.hpp"
#include "core/net/plan.hpp"
#include "core/zo/layer.hpp"

namespace pmt {

struct LossFunction;

struct StepContext {
  const Network* network;
  const Plan* plan;
  const TrainerOptions* options;
  const Layer* layers;
  int32_t layer_count;
  uint32_t step;
  const float* surprisal = nullptr;             // -log of the last step's mean prediction; null where none is kept
  const LossFunction* loss_function = nullptr;  // the host's own, in place of the options' loss
  int32_t loss_shift = 0;                       // of the options' loss, see loss_range.hpp

  const Model& model() const { return *network->model; }
  const Kernels& kernels() const { return *network->kernels; }
};

}  // namespace pmt
