// The first half of a step: the main pass of every sample, stopping at every layer for its queries, whose
// losses go into the tables. Workers share samples and, where these are few, the queries of a sample.
#pragma once

#include "core/train/loss_tables.hpp"
#include "core/zo/query.hpp"

namespace pmt {

class QueryPass {
 public:
  QueryPass(StepMemory& memory, LossTables& losses, int32_t samples, const SampleSource& source);
  Status run(uint32_t step);
  // The same sample by sample, with one worker.
  void begin(uint32_t step);
  Status run_sample(int32_t sample) { return run_part({sample, 0, 0}); }

 private:
  // A sample with one of the parts of its queries, and how far a worker has come with it.
  struct Part {
    int32_t sample, index, worker;
    Target target = {0};
    int32_t done = 0;  // ops of the main pass
  };

  Status run_part(Part part);
  Status run_queries(int32_t table, Part& part);
  Status clean_loss(const Part& part);

  StepMemory& memory_;
  LossTables& losses_;
  const SampleSource& source_;
  const int32_t samples_;
  const int32_t parts_;  // of a sample
};

}  // namespace pmt
