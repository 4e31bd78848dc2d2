#include "core/align/layer_forwards.hpp"

namespace pmt {
namespace {

// Calls visit(tensor, bytes) for every tensor that is alive before an op. `uses` is the model, which searches, or
// a plan, which has them in a table.
template <typename Uses, typename Visit>
void for_alive(const Model& model, const Uses& uses, int32_t op, Visit visit) {
  for (int32_t i = 0; i < model.tensor_count(); ++i) {
    const auto tensor = static_cast<uint32_t>(i);
    const bool alive = uses.producer(tensor) < op && uses.last_use(tensor) >= op;
    if (alive) visit(tensor, element_count(model.tensor(i)));
  }
}

}  // namespace

int32_t kept_bytes(const Model& model) {
  int32_t most = 0;
  for (int32_t op = 1; op < model.op_count(); ++op) {
    int32_t alive = 0;
    for_alive(model, model, op, [&](uint32_t, int32_t bytes) { alive += bytes; });
    if (alive > most) most = alive;
  }
  return most;
}

void copy_activations(const Model& model, const Plan& plan, const Activations& memory, int32_t op, int8_t* kept,
                      bool restores) {
  for_alive(model, plan, op, [&](uint32_t tensor, int32_t bytes) {
    int8_t* const place = memory.tensor(plan, Pass::main, tensor);
    __builtin_memcpy(restores ? place : kept, restores ? kept : place, static_cast<size_t>(bytes));
    kept += bytes;
  });
}

size_t LayerForwards::table_bytes(const Model& model) {
  Arena measure;
  measure.take<Parameters>(model.op_count());
  measure.take<int32_t>(Plan::table_size(model));
  return measure.used();
}

Status LayerForwards::open_forwards(const StatisticsSetup& setup, void* memory, size_t bytes) {
  if (reinterpret_cast<uintptr_t>(memory) % image_alignment != 0) return {Code::arena_alignment};
  arena_ = Arena(memory, bytes);
  executor_ = setup.executor;
  if (workers() < 1) return {Code::option_value};
  const Model& model = *setup.model;
  auto* parameters = arena_.take<Parameters>(model.op_count());
  auto* plan_table = arena_.take<int32_t>(Plan::table_size(model));
  if (!arena_.fits()) return {Code::arena_too_small};
  bind_parameters(model, parameters);
  network_ = {setup.model, setup.kernels, parameters, setup.packed};
  plan_.make(model, nullptr, 0, QueryMemory::shared, plan_table);
  kept_ = setup.kept;
  kept_bytes_ = kept_ == nullptr ? 0 : kept_bytes(model);
  activations_ = arena_.take<Activations>(workers());
  statuses_ = arena_.take<Status>(workers());
  for (int32_t i = 0; i < workers(); ++i) {
    const Activations activations = take_activations(arena_, network_, plan_, 1);
    if (arena_.fits()) activations_[i] = activations;
  }
  return {};
}

Status LayerForwards::check(int32_t op) const {
  if (op < 0 || op >= model().op_count() || !has_weights(model().op(op))) return {Code::layer_not_trainable, op};
  return {};
}

void LayerForwards::visit_sample(const Job& job, int32_t sample, int32_t worker) {
  const Activations& memory = activations_[worker];
  const int32_t begin = resumes_at(job.op) ? kept_->op : 0;
  int8_t* const input = memory.tensor(plan_, Pass::main, model().header().input_tensor);
  int32_t label = 0;
  if (begin > 0) {
    copy_activations(model(), plan_, memory, begin, kept_of(sample), true);
  } else if (!job.source->read(job.source->context, sample, input, &label)) {
    statuses_[worker] = {Code::sample_unreadable};
    return;
  }
  forward(network_, plan_, memory, 1, begin, job.op);
  if (kept_ != nullptr && job.op > begin) copy_activations(model(), plan_, memory, job.op, kept_of(sample), false);
  job.visit(job.context, memory, worker);
}

Status LayerForwards::run(const Job& job, int32_t samples) {
  if (samples % job.consecutive != 0) return {Code::batch_size, job.op};
  if (kept_ != nullptr && samples != kept_->samples) return {Code::batch_size, job.op};
  for (int32_t w = 0; w < workers(); ++w) statuses_[w] = {};
  const bool complete = executor_.for_each(samples / job.consecutive, true, [&](int32_t group, int32_t worker) {
    for (int32_t i = 0; i < job.consecutive && statuses_[worker].ok(); ++i) {
      visit_sample(job, group * job.consecutive + i, worker);
    }
  });
  const Status status = complete ? first_error(statuses_, workers()) : Status{Code::cancelled};
  // Where it failed, some samples have come further than others.
  if (kept_ != nullptr) kept_->op = status.ok() ? job.op : 0;
  return status;
}

}  // namespace pmt
