#include "core/train/query_pass.hpp"

#include "core/base/arithmetic.hpp"
#include "core/zo/loss_units.hpp"

namespace pmt {
namespace {

// Queries of a sample are split into parts only where samples alone would leave workers idle.
int32_t parts_for(int32_t workers, int32_t samples, int32_t queries) {
  if (workers == 1) return 1;
  return clamp((4 * workers + samples - 1) / samples, 1, queries < 1 ? 1 : queries);
}

// Where part `index` of `parts` begins.
int32_t part_begin(int32_t count, int32_t index, int32_t parts) {
  return static_cast<int32_t>(int64_t{count} * index / parts);
}

}  // namespace

QueryPass::QueryPass(StepMemory& memory, LossTables& losses, int32_t samples, const SampleSource& source)
    : memory_(memory),
      losses_(losses),
      source_(source),
      samples_(samples),
      parts_(parts_for(memory.workers(), samples, losses.most_queries())) {}

void QueryPass::begin(uint32_t step) {
  memory_.context.step = step;
  losses_.prediction().clear_sums();
  for (int32_t i = 0; i < memory_.workers(); ++i) memory_.statuses[i] = {};
}

Status QueryPass::run(uint32_t step) {
  begin(step);
  const auto task = [](void* argument, int32_t index, int32_t worker) {
    QueryPass& pass = *static_cast<QueryPass*>(argument);
    Status& status = pass.memory_.statuses[worker];
    if (status.ok()) status = pass.run_part({index / pass.parts_, index % pass.parts_, worker});
  };
  const Executor& executor = memory_.setup.executor;
  if (!executor.run(executor.context, samples_ * parts_, task, this, true)) return {Code::cancelled};
  return first_error(memory_.statuses, memory_.workers());
}

Status QueryPass::run_part(Part part) {
  PMT_RETURN_IF_ERROR(memory_.read_sample(source_, part.sample, part.worker, &part.target));
  for (int32_t table = 0; table < losses_.count(); ++table) PMT_RETURN_IF_ERROR(run_queries(table, part));
  return part.index > 0 ? Status{} : clean_loss(part);
}

Status QueryPass::run_queries(int32_t table, Part& part) {
  const int32_t begin = part_begin(losses_.queries(table), part.index, parts_);
  const int32_t end = part_begin(losses_.queries(table), part.index + 1, parts_);
  if (begin == end) return {};
  const Workspace& workspace = memory_.workspaces[part.worker];
  const LayerRange perturbed =
      memory_.is_layer_wise() ? LayerRange{table, table} : LayerRange{0, memory_.setup.layer_count - 1};
  const Layer& first = memory_.layers[perturbed.first];
  Plan& plan = memory_.plan;
  forward(memory_.network, plan, workspace, 1, part.done, plan.main_end(first.op));
  part.done = plan.main_end(first.op);
  plan.place_queries(first.op);
  const Executor& executor = memory_.setup.executor;
  const int32_t at_once = queries_at_once(plan, first, memory_.setup.query_bytes);
  const int32_t rows = logit_rows(memory_.options, first, at_once);
  int32_t scored = begin;
  for (int32_t q = begin; q < end; q += at_once) {
    if (executor.stopping(executor.context, part.worker)) return {Code::cancelled};
    const ScoredSample sample = {part.sample, part.target};
    const QueryBatch queries = {q, q + at_once < end ? at_once : end - q, sample};
    query_logits(memory_.context, workspace, perturbed, queries, q - scored);
    const int32_t done = q + queries.count;
    if (done < end && done + at_once - scored <= rows) continue;  // room for more
    int32_t* losses = losses_.row(table, part.sample) + scored;
    PMT_RETURN_IF_ERROR(losses_of(memory_.context, sample, workspace.logits, done - scored, losses));
    scored = done;
  }
  return {};
}

// The rest of the main pass.
Status QueryPass::clean_loss(const Part& part) {
  const Workspace& workspace = memory_.workspaces[part.worker];
  const Model& model = *memory_.setup.model;
  forward(memory_.network, memory_.plan, workspace, 1, part.done, model.op_count() - 1);
  main_logits(memory_.network, memory_.plan, workspace, 1, false);
  losses_.prediction().add(part.worker, workspace.logits);
  CleanLoss& clean = losses_.clean(part.sample);
  clean.correct = arg_max(workspace.logits, model.classes()) == part.target.label ? 1 : 0;
  return losses_of(memory_.context, {part.sample, part.target}, workspace.logits, 1, &clean.loss);
}

}  // namespace pmt
