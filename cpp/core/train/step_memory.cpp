#include "core/train/step_memory.hpp"

#include "core/zo/estimated.hpp"
#include "core/zo/loss_range.hpp"
#include "core/zo/loss_units.hpp"

namespace pmt {
namespace {

struct Tables {
  Parameters* parameters;
  int32_t* plan;
  Layer* layers;
  int32_t* layer_ops;
  int64_t* loss_starts;
  int32_t *perturbs_nodes, *scratch, *tiles;  // of a compact plan
};

Tables take_tables(Arena& arena, const Model& model, int32_t layer_count, bool compact) {
  Tables tables = {};
  tables.parameters = arena.take<Parameters>(MemoryPart::lists, model.op_count());
  tables.plan = arena.take<int32_t>(MemoryPart::lists, Plan::table_size(model));
  tables.layers = arena.take<Layer>(MemoryPart::lists, layer_count);
  tables.layer_ops = arena.take<int32_t>(MemoryPart::lists, layer_count);
  tables.loss_starts = arena.take<int64_t>(MemoryPart::lists, layer_count);
  tables.perturbs_nodes = arena.take<int32_t>(MemoryPart::lists, compact ? layer_count : 0);
  tables.scratch = arena.take<int32_t>(MemoryPart::lists, compact ? model.op_count() : 0);
  tables.tiles = arena.take<int32_t>(MemoryPart::lists, compact ? layer_count : 0);
  return tables;
}

Status check_setup(const TrainerSetup& setup) {
  PMT_RETURN_IF_ERROR(check_options(*setup.options));
  if (setup.loss_function != nullptr && setup.options->loss != Loss::function) return {Code::option_loss};
  if (setup.batch < 1) return {Code::batch_size};
  const int32_t workers = setup.executor.workers;
  if (workers < 1) return {Code::option_value};
  if (setup.compact && (workers > 1 || setup.query_bytes > 0)) return {Code::option_value};
  // Weights are packed for a layer's whole image, and streams compute bands of it.
  if (setup.compact && setup.packed != nullptr) return {Code::option_value};
  return {};
}

Status open_layers(StepMemory& memory, int32_t* layer_ops) {
  const TrainerSetup& setup = memory.setup;
  const Model& model = *setup.model;
  if (setup.layer_count < 1) return {Code::layer_repeated};
  for (int32_t i = 0; i < setup.layer_count; ++i) {
    const int32_t op = setup.layers[i];
    if (op < 0 || op >= model.op_count() || !has_weights(model.op(op))) return {Code::layer_not_trainable, op};
    if (i > 0 && op <= setup.layers[i - 1]) return {Code::layer_repeated, op};
    Layer& layer = memory.layers[i];
    layer = make_layer(model, op, memory.options, setup.storage[i]);
    if (!is_linked(linked::estimators, layer.estimator)) return {Code::not_linked, op};
    memory.network.parameters[op] = {layer.weights, layer.bias};
    layer_ops[i] = op;
  }
  return {};
}

// Model-wise queries perturb every layer of a segment, and do not stream.
Status make_plan(StepMemory& memory, const Tables& tables) {
  const TrainerSetup& setup = memory.setup;
  const Model& model = *setup.model;
  if (!setup.compact) {
    const QueryMemory queries = setup.query_bytes > 0 ? QueryMemory::apart : QueryMemory::shared;
    memory.plan.make(model, tables.layer_ops, setup.layer_count, queries, tables.plan);
    return {};
  }
  for (int32_t i = 0; i < model.op_count(); ++i) tables.scratch[i] = op_scratch_bytes(memory.network, model.op(i));
  for (int32_t i = 0; i < setup.layer_count; ++i) {
    const Layer& layer = memory.layers[i];
    tables.perturbs_nodes[i] = perturbs_nodes(layer) ? 1 : 0;
    tables.tiles[i] = planned_tile_bytes(memory.network, layer, memory.options);
    const bool products = !is_estimated(layer, Estimator::weight_perturbation);
    if (products) tables.scratch[layer.op] = scratch_bytes(memory.network, layer.op);
  }
  const Plan::Compact compact = {tables.perturbs_nodes,  tables.scratch, tables.tiles,
                                 memory.is_layer_wise(), setup.streams,  setup.stream_count};
  return memory.plan.make_compact(model, tables.layer_ops, setup.layer_count, compact, tables.plan);
}

}  // namespace

size_t StepMemory::table_bytes(const Model& model, int32_t layer_count) {
  Arena measure;
  take_tables(measure, model, layer_count, true);
  return measure.used();
}

Status StepMemory::open(const TrainerSetup& wanted, Arena& arena) {
  setup = wanted;
  options = *wanted.options;
  PMT_RETURN_IF_ERROR(check_setup(setup));
  const Tables tables = take_tables(arena, *setup.model, setup.layer_count, setup.compact);
  if (!arena.fits()) return {Code::arena_too_small};
  layers = tables.layers;
  loss_starts = tables.loss_starts;
  network = {setup.model, setup.kernels, tables.parameters, setup.packed};
  context = {&network, &plan, &options, layers, setup.layer_count, 0, nullptr, setup.loss_function};
  context.loss_shift = loss_shift(options.loss, setup.model->output());
  bind_parameters(*setup.model, tables.parameters);
  PMT_RETURN_IF_ERROR(open_layers(*this, tables.layer_ops));
  return make_plan(*this, tables);
}

void StepMemory::open_workers(Arena& arena) {
  if (setup.compact && takes_targets(options.loss)) {
    targets = arena.take<float>(MemoryPart::tables, setup.model->classes());
  }
  workspaces = arena.take<Workspace>(MemoryPart::lists, workers());
  statuses = arena.take<Status>(MemoryPart::lists, workers());
  const WorkspaceSetup each = {&network, &plan, layers, setup.layer_count, &options, setup.query_bytes};
  for (int32_t i = 0; i < workers(); ++i) {
    const Workspace workspace = take_workspace(arena, each);
    if (arena.fits()) workspaces[i] = workspace;
  }
}

Status StepMemory::read_sample(const SampleSource& source, int32_t sample, int32_t worker, Target* target) const {
  const Model& model = *setup.model;
  int8_t* input = workspaces[worker].tensor(plan, Pass::main, model.header().input_tensor);
  *target = {no_label};
  if (!source.read(source.context, sample, input, &target->label)) return {Code::sample_unreadable};
  if (source.targets != nullptr || source.read_targets != nullptr) {
    if (!takes_targets(options.loss)) return {Code::label_targets};
    if (source.targets != nullptr) {
      target->values = source.targets + int64_t{sample} * model.classes();
    } else {
      if (targets == nullptr || !source.read_targets(source.context, sample, targets)) return {Code::sample_unreadable};
      target->values = targets;
    }
    target->label = arg_max(target->values, model.classes());
    return {};
  }
  const int32_t least = needs_labels(options.loss) ? 0 : no_label;
  return target->label >= least && target->label < model.classes() ? Status{} : Status{Code::label_range};
}

}  // namespace pmt
