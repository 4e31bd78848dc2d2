#include "core/train/selection.hpp"

#include "core/zo/loss.hpp"
#include "core/zo/loss_units.hpp"

namespace pmt {
namespace {

using StoreCall = Status (*)(void* context, const Layer& layer);

// The first error does not keep the other layers from being saved or restored.
Status for_each_layer(const Trainer& trainer, const ParameterStore& store, StoreCall call) {
  Status first = {};
  for (int32_t i = 0; i < trainer.layer_count(); ++i) {
    const Status status = call(store.context, trainer.layer(i));
    if (!status.ok() && first.ok()) first = status;
    repack_layer(trainer.network(), trainer.layer(i).op);
  }
  return first;
}

Status train(Trainer& trainer, const TrialSteps& steps) {
  for (int32_t i = 0; i < steps.count; ++i) {
    const auto step = static_cast<uint32_t>(i);
    float learning_rate = 0.0f;
    StepResult result = {};
    PMT_RETURN_IF_ERROR(steps.begin(steps.context, step, &learning_rate));
    PMT_RETURN_IF_ERROR(trainer.step(step, learning_rate, steps.samples, steps.source, &result));
  }
  return {};
}

Status score_held_out(const Trainer& trainer, const SelectionSetup& setup, CandidateScore* score) {
  const Network& network = trainer.network();
  const Model& model = *network.model;
  const Workspace& workspace = trainer.workspace(0);
  const Executor& executor = setup.trainer.executor;
  int8_t* input = workspace.tensor(trainer.plan(), Pass::main, model.header().input_tensor);
  *score = {0, 0};
  for (int32_t n = 0; n < setup.held_out_count; ++n) {
    if (executor.stopping(executor.context, 0)) return {Code::cancelled};
    int32_t label = 0;
    if (!setup.held_out.read(setup.held_out.context, n, input, &label)) return {Code::sample_unreadable};
    if (label < 0 || label >= model.classes()) return {Code::label_range};
    forward(network, trainer.plan(), workspace, 1, 0, model.op_count() - 1);
    main_logits(network, trainer.plan(), workspace, 1, false);
    score->loss_sum += cross_entropy(workspace.logits, model.classes(), label);
    score->correct += arg_max(workspace.logits, model.classes()) == label ? 1 : 0;
  }
  return {};
}

}  // namespace

Status try_candidate(const SelectionSetup& setup, const Candidate& candidate, void* memory, size_t bytes,
                     CandidateScore* score) {
  TrainerSetup with = setup.trainer;
  with.layers = candidate.layers;
  with.layer_count = candidate.layer_count;
  with.storage = candidate.storage;
  Trainer trainer;
  PMT_RETURN_IF_ERROR(trainer.open(with, memory, bytes));
  Status status = for_each_layer(trainer, setup.store, setup.store.save);
  if (!status.ok()) return status;  // nothing has changed yet, and there may be nothing to restore
  status = train(trainer, setup.steps);
  if (status.ok()) status = score_held_out(trainer, setup, score);
  const Status restored = for_each_layer(trainer, setup.store, setup.store.restore);
  return status.ok() ? restored : status;
}

Status select_layers(const SelectionSetup& setup, const Candidate* candidates, int32_t count, void* memory,
                     size_t bytes, CandidateScore* scores) {
  for (int32_t i = 0; i < count; ++i) {
    PMT_RETURN_IF_ERROR(try_candidate(setup, candidates[i], memory, bytes, &scores[i]));
  }
  return {};
}

}  // namespace pmt
