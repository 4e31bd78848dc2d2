// The gradient of one layer over the batch, from the differences of its queries' losses: a group of channels
// after another. One group where there is memory for all; a smaller one takes the signs of the queries
// again. That a group has been updated does not change the gradient of the next: a channel's nodes depend on
// its own weights, and what depends on all, a head's logits and the count of free nodes, is kept from the first.
#pragma once

#include "core/train/gradient_memory.hpp"
#include "core/train/loss_tables.hpp"

namespace pmt {

class GradientPass {
 public:
  GradientPass(const StepMemory& memory, LossTables& losses, const GradientMemory& gradients, int32_t layer,
               int32_t samples, const SampleSource& source);

  // Sums up a group. The sums are the first worker's, and stay until the next group's.
  Status sum(const ChannelGroup& channels, GradientSums* sums);

 private:
  Status add_sample(int32_t sample, int32_t worker);
  Status run_main(int32_t sample, int32_t worker, Target* target);
  void add_head(const ScoredSample& sample, int32_t worker, const GradientSums& sums);
  template <typename Visit>
  void for_rows(int32_t worker, const Visit& visit);
  void add_nodes(int32_t sample, int32_t worker, const GradientSums& sums);
  const int32_t* differences(int32_t sample) const;
  bool counts_free_nodes() const { return is_first_group_ && gradients_.counts_free_nodes(); }

  const StepMemory& memory_;
  LossTables& losses_;
  const GradientMemory& gradients_;
  const Layer& layer_;
  const int32_t table_;
  const int32_t samples_;
  const SampleSource& source_;
  const bool shared_;  // the differences, among all samples
  ChannelGroup channels_ = {0, 0};
  bool main_done_ = false;  // the main pass of the only sample is in the workspace
  bool is_first_group_ = true;
};

}  // namespace pmt
