#include "core/layer_forwards.hpp"

namespace pmt {

struct LayerForwards::Job {
  LayerForwards* forwards;
  const SampleSource* source;
  int32_t op;
  Look look;
  void* context;
};

size_t LayerForwards::table_bytes(const Model& model) {
  Arena measure;
  measure.take<Parameters>(model.op_count());
  measure.take<int32_t>(Plan::table_size(model));
  return measure.used();
}

Status LayerForwards::open(const StatisticsSetup& setup, Arena& arena) {
  executor_ = setup.executor;
  if (workers() < 1) return {Code::option_value};
  const Model& model = *setup.model;
  auto* parameters = arena.take<Parameters>(model.op_count());
  auto* plan_table = arena.take<int32_t>(Plan::table_size(model));
  if (!arena.fits()) return {Code::arena_too_small};
  bind_parameters(model, parameters);
  network_ = {setup.model, setup.kernels, parameters, setup.packed};
  plan_.make(model, nullptr, 0, QueryMemory::shared, plan_table);
  workspaces_ = arena.take<Workspace>(workers());
  statuses_ = arena.take<Status>(workers());
  const TrainerOptions none;
  for (int32_t i = 0; i < workers(); ++i) {
    const Workspace workspace = take_workspace(arena, {&network_, &plan_, nullptr, 0, &none, 1, 0});
    if (arena.fits()) workspaces_[i] = workspace;
  }
  return {};
}

Status LayerForwards::check(int32_t op) const {
  if (op < 0 || op >= model().op_count() || !has_weights(model().op(op))) return {Code::layer_not_trainable, op};
  return {};
}

void LayerForwards::look_at(const Job& job, int32_t sample, int32_t worker) {
  const Workspace& workspace = workspaces_[worker];
  int32_t label = 0;
  if (!job.source->read(job.source->context, sample, workspace.tensor(plan_, Pass::main, model().header().input_tensor),
                        &label)) {
    statuses_[worker] = {Code::sample_unreadable};
    return;
  }
  forward(network_, plan_, workspace, 1, 0, job.op);
  job.look(job.context, workspace, worker);
}

Status LayerForwards::run(int32_t op, int32_t samples, const SampleSource& source, Look look, void* context) {
  for (int32_t w = 0; w < workers(); ++w) statuses_[w] = {};
  Job job = {this, &source, op, look, context};
  const auto task = [](void* argument, int32_t sample, int32_t worker) {
    const Job& j = *static_cast<Job*>(argument);
    if (j.forwards->statuses_[worker].ok()) j.forwards->look_at(j, sample, worker);
  };
  if (!executor_.run(executor_.context, samples, task, &job, true)) return {Code::cancelled};
  for (int32_t w = 0; w < workers(); ++w) PMT_RETURN_IF_ERROR(statuses_[w]);
  return {};
}

}  // namespace pmt
