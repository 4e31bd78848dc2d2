#include "core/train/gradient_pass.hpp"

#include "core/base/arithmetic.hpp"
#include "core/net/stream_run.hpp"
#include "core/zo/estimated.hpp"

namespace pmt {

GradientPass::GradientPass(const StepMemory& memory, LossTables& losses, const GradientMemory& gradients, int32_t layer,
                           int32_t samples, const SampleSource& source)
    : memory_(memory),
      losses_(losses),
      gradients_(gradients),
      layer_(memory.layers[layer]),
      table_(losses.table_of(layer)),
      samples_(samples),
      source_(source),
      shared_(shares_perturbations(memory.options, layer_.estimator)) {
  if (shared_) losses_.average(table_, samples);
}

Status GradientPass::sum(const ChannelGroup& channels, GradientSums* sums) {
  channels_ = channels;
  for (int32_t w = 0; w < memory_.workers(); ++w) {
    memory_.statuses[w] = {};
    if (counts_free_nodes()) gradients_.free_nodes(w) = 0;
    if (!gradients_.lies_in_gaps()) gradients_.clear(w, layer_, channels);
  }
  const auto task = [](void* argument, int32_t index, int32_t worker) {
    GradientPass& pass = *static_cast<GradientPass*>(argument);
    Status& status = pass.memory_.statuses[worker];
    if (status.ok()) status = pass.add_sample(index, worker);
  };
  const Executor& executor = memory_.setup.executor;
  executor.run(executor.context, shared_ ? 1 : samples_, task, this, false);
  gradients_.join(layer_, channels);
  *sums = gradients_.joined(layer_, channels);
  is_first_group_ = false;
  return first_error(memory_.statuses, memory_.workers());
}

Status GradientPass::add_sample(int32_t sample, int32_t worker) {
  const bool weights = is_estimated(layer_, Estimator::weight_perturbation);
  Target target = {0};
  if (!weights && !main_done_) PMT_RETURN_IF_ERROR(run_main(sample, worker, &target));
  if (gradients_.lies_in_gaps()) {
    gradients_.clear(worker, layer_, channels_);
    main_done_ = true;
  }
  const GradientSums sums = gradients_.sums(worker, layer_, channels_);
  if (weights) {
    const auto id = static_cast<uint32_t>(sample);
    add_weight_gradient(memory_.context, memory_.workspaces[worker], layer_, id, differences(sample), sums);
  } else if (is_estimated(layer_, Estimator::closed_form)) {
    add_head({sample, target}, worker, sums);
  } else {
    add_nodes(sample, worker, sums);
  }
  return {};
}

// The main pass as far as the gradient needs it.
Status GradientPass::run_main(int32_t sample, int32_t worker, Target* target) {
  PMT_RETURN_IF_ERROR(memory_.read_sample(source_, sample, worker, target));
  const Plan& plan = memory_.plan;
  const bool exact = is_estimated(layer_, Estimator::closed_form);
  const int32_t end = plan.streams(layer_.op) ? plan.segment_begin(layer_.op) : layer_.op + (exact ? 0 : 1);
  forward(memory_.network, plan, memory_.workspaces[worker], 1, 0, end);
  return {};
}

// The first group's update changes the logits: what they give for every sample is kept.
void GradientPass::add_head(const ScoredSample& sample, int32_t worker, const GradientSums& sums) {
  const Workspace& workspace = memory_.workspaces[worker];
  const bool compact = memory_.setup.compact;
  int32_t* gradient = compact ? gradients_.head_gradient(sample.index) : workspace.head_gradient;
  if (is_first_group_ || !compact) head_gradient(memory_.context, workspace, sample, gradient);
  add_head_product(memory_.context, workspace, layer_, gradient, sums);
}

// Calls visit(rows): row by row where the layer streams, else once with the whole tensors.
template <typename Visit>
void GradientPass::for_rows(int32_t worker, const Visit& visit) {
  const Plan& plan = memory_.plan;
  const Workspace& workspace = memory_.workspaces[worker];
  if (!plan.streams(layer_.op)) {
    visit(main_rows(memory_.context, workspace, layer_));
    return;
  }
  run_stream(*memory_.setup.model, plan, workspace, {Pass::main, 0}, plan.segment_begin(layer_.op), layer_.op,
             [&](int32_t op, const OpImages& rows) {
               run_op(memory_.network, op, rows, workspace.scratch_of(plan, Pass::main, op));
               if (op == layer_.op) visit(LayerRows{rows.input[0], rows.output, rows.shape});
             });
}

void GradientPass::add_nodes(int32_t sample, int32_t worker, const GradientSums& sums) {
  const Workspace& workspace = memory_.workspaces[worker];
  DirectionSums directions(memory_.context, workspace, layer_, static_cast<uint32_t>(sample), differences(sample));
  directions.open(Purpose::node_signs);
  if (is_estimated(layer_, Estimator::pooled_perturbation)) {
    PooledGradient pooled(memory_.context, workspace, layer_);
    for_rows(worker, [&](const LayerRows& rows) { pooled.count(rows); });
    pooled.share(directions);
  }
  NodeGradient gradient(memory_.context, workspace, layer_, directions, sums);
  for_rows(worker, [&](const LayerRows& rows) { gradient.add(rows); });
  if (counts_free_nodes()) gradients_.free_nodes(worker) += gradient.free_nodes();
}

const int32_t* GradientPass::differences(int32_t sample) const {
  return shared_ ? losses_.averages() : losses_.row(table_, sample);
}

}  // namespace pmt
