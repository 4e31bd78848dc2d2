// The core's head solver with its arena, threads and in-memory samples.
#pragma once

#include <functional>
#include <vector>

#include "core/learn/head_solver.hpp"
#include "host/host_model.hpp"
#include "host/sample_array.hpp"

namespace pmt::host {

struct HeadData {
  SampleArray inputs;  // of the head, in place of images
  Loss loss;
  std::vector<uint8_t> folds;  // one a sample, or none
  int32_t fold_count;
};

struct HeadSolution {
  float strength;
  int64_t macs, choice_macs;  // multiply-accumulates of the solution, and of choosing the strength
  float loss;                 // mean, on the samples
  float held_out_loss;        // mean, on the samples of every fold by the head of the others; NaN where none chose
};

// Solves the head `op` in place; 0 as the strength: folds choose it. The result does not depend on the threads.
HeadSolution solve_head(HostModel& model, int32_t op, const HeadData& data, float strength, int32_t threads,
                        const std::function<bool()>& should_stop);

}  // namespace pmt::host
