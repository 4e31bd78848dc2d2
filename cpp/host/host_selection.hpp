// The core's selection with its arena, threads and in-memory samples.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "core/train/selection.hpp"
#include "host/host_model.hpp"
#include "host/host_trainer.hpp"

namespace pmt::host {

// The samples of every trial step, one step after another, and the steps' learning rates.
struct TrialData {
  SampleArray samples;
  const float* learning_rates;
  int32_t steps;
  int32_t batch;
};

// Scores of the candidates, op indices each. The model's weights are as before in the end.
std::vector<CandidateScore> select_layers(const std::shared_ptr<HostModel>& model, const TrainerOptions& options,
                                          const std::vector<std::vector<int32_t>>& candidates, const TrialData& trial,
                                          const SampleArray& held_out, int32_t threads,
                                          const std::function<bool()>& should_stop);

}  // namespace pmt::host
