// How a trainer is opened: its tables, layers and plan, and what each of them takes of the arena.
#include "core/train/trainer.hpp"

namespace pmt {

struct Trainer::Tables {
  Parameters* parameters;
  int32_t* plan;
  Layer* layers;
  int32_t* layer_ops;
  int64_t* starts;
  LayerSettings* settings;                    // of a probe
  int32_t *perturbs_nodes, *scratch, *tiles;  // of a compact plan
};

namespace {

int32_t larger(int32_t a, int32_t b) { return a < b ? b : a; }

}  // namespace

Trainer::Tables Trainer::take_tables(Arena& arena, const Model& model, int32_t layer_count, bool probing,
                                     bool compact) {
  Tables tables = {};
  tables.parameters = arena.take<Parameters>(model.op_count());
  tables.plan = arena.take<int32_t>(Plan::table_size(model));
  tables.layers = arena.take<Layer>(layer_count);
  tables.layer_ops = arena.take<int32_t>(layer_count);
  tables.starts = arena.take<int64_t>(layer_count);
  tables.settings = arena.take<LayerSettings>(probing ? layer_count : 0);
  tables.perturbs_nodes = arena.take<int32_t>(compact ? layer_count : 0);
  tables.scratch = arena.take<int32_t>(compact ? model.op_count() : 0);
  tables.tiles = arena.take<int32_t>(compact ? layer_count : 0);
  return tables;
}

size_t Trainer::table_bytes(const Model& model, int32_t layer_count) {
  Arena measure;
  take_tables(measure, model, layer_count, true, true);
  return measure.used();
}

Status Trainer::open(const TrainerSetup& setup, void* memory, size_t bytes) {
  setup_ = setup;
  options_ = *setup.options;
  PMT_RETURN_IF_ERROR(check_setup());
  if (reinterpret_cast<uintptr_t>(memory) % image_alignment != 0) return {Code::arena_alignment};
  arena_ = Arena(memory, bytes);
  const Tables tables = take_tables(arena_, *setup.model, setup.layer_count, setup.probing, setup.compact);
  if (!arena_.fits()) return {Code::arena_too_small};
  layers_ = tables.layers;
  layer_ops_ = tables.layer_ops;
  starts_ = tables.starts;
  settings_ = tables.settings;
  network_ = {setup.model, setup.kernels, tables.parameters, setup.packed};
  bind_parameters(*setup.model, tables.parameters);
  PMT_RETURN_IF_ERROR(open_layers());
  PMT_RETURN_IF_ERROR(make_plan(tables));
  open_losses();
  open_sums();
  open_memories();
  open_workspaces();
  if (!arena_.fits()) return {Code::arena_too_small};
  for (int64_t i = 0; i < memories_.count; ++i) memories_.values[i] = 0.0f;
  estimation_ = {&network_, &plan_, &options_, layers_, setup.layer_count, 0};
  estimated_ = layers_;
  ready_ = -1;
  return {};
}

Status Trainer::check_setup() const {
  PMT_RETURN_IF_ERROR(check_options(options_));
  if (setup_.batch < 1) return {Code::batch_size};
  const int32_t workers = setup_.executor.workers;
  if (workers < 1) return {Code::option_value};
  if (setup_.compact && (workers > 1 || setup_.query_bytes > 0)) return {Code::option_value};
  // Weights are packed for a layer's whole image, and streams compute bands of it.
  if (setup_.compact && setup_.packed != nullptr) return {Code::option_value};
  return {};
}

// Coordinates read a layer's nodes one by one, a probe's input squares all of them, and model-wise
// queries perturb every layer of a segment: none of these streams.
Status Trainer::make_plan(const Tables& tables) {
  const Model& model = *setup_.model;
  if (!setup_.compact) {
    const QueryMemory queries = setup_.query_bytes > 0 ? QueryMemory::apart : QueryMemory::shared;
    plan_.make(model, layer_ops_, setup_.layer_count, queries, tables.plan);
    return {};
  }
  for (int32_t i = 0; i < setup_.layer_count; ++i) {
    tables.perturbs_nodes[i] = layers_[i].estimator == Estimator::node_perturbation ? 1 : 0;
  }
  if (setup_.probing) {  // either estimator
    plan_.make(model, layer_ops_, setup_.layer_count, QueryMemory::shared, tables.plan);
    return {};
  }
  for (int32_t i = 0; i < model.op_count(); ++i) tables.scratch[i] = op_scratch_bytes(network_, model.op(i));
  for (int32_t i = 0; i < setup_.layer_count; ++i) {
    const Layer& layer = layers_[i];
    tables.tiles[i] = planned_tile_bytes(network_, layer, options_);
    const bool products = layer.estimator != Estimator::weight_perturbation;
    if (products) tables.scratch[layer.op] = scratch_bytes(network_, layer.op);
  }
  const bool streams = options_.scope == Scope::layer_wise && !is_coordinate_wise();
  const Plan::Compact compact = {tables.perturbs_nodes, tables.scratch,     tables.tiles, streams,
                                 setup_.streams,        setup_.stream_count};
  return plan_.make_compact(model, layer_ops_, setup_.layer_count, compact, tables.plan);
}

void Trainer::open_losses() {
  const int32_t probed = setup_.probing ? options_.probe_queries : 0;
  const int64_t entries = open_table(), probe_entries = int64_t{table_count()} * probed * setup_.batch;
  losses_ = arena_.take<int32_t>(entries > probe_entries ? entries : probe_entries);
  averages_ = arena_.take<int32_t>(is_coordinate_wise() ? 0 : larger(most_table_queries(), probed));
  samples_ = arena_.take<SampleState>(setup_.batch);
}

void Trainer::open_workspaces() {
  const int32_t workers = setup_.executor.workers;
  const int32_t probed = setup_.probing ? options_.probe_queries : 0;
  workspaces_ = arena_.take<Workspace>(workers);
  statuses_ = arena_.take<Status>(workers);
  const WorkspaceSetup setup = {&network_, &plan_, layers_, setup_.layer_count, &options_, setup_.query_bytes, probed};
  for (int32_t i = 0; i < workers; ++i) {
    const Workspace workspace = take_workspace(arena_, setup);
    if (arena_.fits()) workspaces_[i] = workspace;
  }
}

Status Trainer::open_layers() {
  const Model& model = *setup_.model;
  if (setup_.layer_count < 1) return {Code::layer_repeated};
  for (int32_t i = 0; i < setup_.layer_count; ++i) {
    const int32_t op = setup_.layers[i];
    if (op < 0 || op >= model.op_count() || !has_weights(model.op(op))) return {Code::layer_not_trainable, op};
    if (i > 0 && op <= setup_.layers[i - 1]) return {Code::layer_repeated, op};
    const bool own = setup_.settings != nullptr;
    PMT_RETURN_IF_ERROR(open_layer(i, own ? setup_.settings[i] : default_settings(model, op, options_)));
  }
  return {};
}

Status Trainer::open_layer(int32_t index, const LayerSettings& settings) {
  const Model& model = *setup_.model;
  const int32_t op = setup_.layers[index];
  PMT_RETURN_IF_ERROR(check_settings(model, op, options_, settings));
  const OpRecord& record = model.op(op);
  const TensorRecord& out = model.output_of(record);
  Layer& layer = layers_[index];
  layer = {op,
           settings.estimator,
           weight_count(model, record),
           element_count(out),
           out.channels,
           setup_.storage[index].weights,
           setup_.storage[index].bias,
           settings.queries,
           settings.mu_weight,
           settings.mu_node,
           options_.mu_per_channel != 0 ? mean_weight_scale(model, record) : 0.0f};
  if (is_coordinate_wise()) layer.queries = coordinate_count(options_, layer);
  layer_ops_[index] = op;
  network_.parameters[op] = {layer.weights, layer.bias};
  return {};
}

void Trainer::open_memories() {
  int64_t values = 0;
  for (int32_t i = 0; i < setup_.layer_count; ++i) values += update_memory_values(options_, layers_[i]);
  memories_.count = values > 0 ? values + 1 : 0;
  memories_.values = arena_.take<float>(memories_.count);
  const bool measured = options_.gradient_norm_scaling == GradientNormScaling::measured;
  input_squares_ = measured ? arena_.take<int64_t>(setup_.batch) : nullptr;
}

}  // namespace pmt
