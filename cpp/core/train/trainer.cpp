#include "core/train/trainer.hpp"

#include "core/base/arithmetic.hpp"
#include "core/zo/loss.hpp"

namespace pmt {

struct Trainer::Job {
  Trainer* trainer;
  const SampleSource* source;
  int32_t chunks_a_sample;
};

namespace {

constexpr float most_updates = 16777216.0f;  // a float counts no further

// Queries of a sample are split into tasks only where samples alone would leave workers idle.
int32_t chunks_for(int32_t workers, int32_t samples, int32_t queries) {
  if (workers == 1) return 1;
  return clamp((4 * workers + samples - 1) / samples, 1, queries < 1 ? 1 : queries);
}

// Where part `index` of `parts` begins.
int32_t part_of(int32_t count, int32_t index, int32_t parts) {
  return static_cast<int32_t>(int64_t{count} * index / parts);
}

}  // namespace

bool Trainer::shares_perturbations(Estimator estimator) const {
  const bool weights = estimator == Estimator::weight_perturbation;
  return options_.sharing == Sharing::batch && weights && !is_coordinate_wise();
}

Status Trainer::read_sample(const SampleSource& source, int32_t sample, int32_t worker, int32_t* label) {
  const Model& model = *setup_.model;
  int8_t* input = workspaces_[worker].tensor(plan_, Pass::main, model.header().input_tensor);
  if (!source.read(source.context, sample, input, label)) return {Code::sample_unreadable};
  if (*label < 0 || *label >= model.classes()) return {Code::label_range};
  return {};
}

// The main pass of one sample, stopping at every layer for a chunk of its queries.
void Trainer::evaluate_queries(Job& job, int32_t sample, int32_t chunk, int32_t worker) {
  const Workspace& workspace = workspaces_[worker];
  int32_t label = 0;
  statuses_[worker] = read_sample(*job.source, sample, worker, &label);
  if (!statuses_[worker].ok()) return;
  int32_t clean = 0;
  if (is_coordinate_wise()) {  // every table needs it, and may have no row for every sample
    const SampleState state = evaluate_clean(label, 0, worker);
    clean = state.loss;
    if (chunk == 0) samples_[sample] = state;
    statuses_[worker] = read_sample(*job.source, sample, worker, &label);
    if (!statuses_[worker].ok()) return;
  }
  int32_t done = 0;
  const bool layer_wise = options_.scope == Scope::layer_wise;
  for (int32_t table = 0; table < table_count(); ++table) {
    const LayerRange perturbed = layer_wise ? LayerRange{table, table} : LayerRange{0, setup_.layer_count - 1};
    const Layer& first = layers_[perturbed.first];
    const int32_t begin = part_of(table_queries(table), chunk, job.chunks_a_sample);
    const int32_t end = part_of(table_queries(table), chunk + 1, job.chunks_a_sample);
    if (begin == end) continue;
    forward(network_, plan_, workspace, 1, done, plan_.main_end(first.op));
    done = plan_.main_end(first.op);
    plan_.place_queries(first.op);
    const int32_t at_once = queries_at_once(plan_, first, setup_.query_bytes);
    for (int32_t q = begin; q < end; q += at_once) {
      if (setup_.executor.stopping(setup_.executor.context, worker)) {
        statuses_[worker] = {Code::cancelled};
        return;
      }
      const QueryBatch queries = {q, q + at_once < end ? at_once : end - q, static_cast<uint32_t>(sample), label};
      if (adds_up(table)) {
        add_differences(table, queries, clean, worker);
      } else {
        query_losses(estimation_, workspace, perturbed, queries, losses(table, sample) + q);
      }
    }
  }
  if (chunk == 0 && !is_coordinate_wise()) samples_[sample] = evaluate_clean(label, done, worker);
}

// The rest of the main pass, from op `done` on.
Trainer::SampleState Trainer::evaluate_clean(int32_t label, int32_t done, int32_t worker) const {
  const Workspace& workspace = workspaces_[worker];
  forward(network_, plan_, workspace, 1, done, setup_.model->op_count() - 1);
  main_logits(network_, plan_, workspace, 1, options_.int8_logits != 0);
  const int32_t classes = setup_.model->classes();
  return {cross_entropy(workspace.logits, classes, label), arg_max(workspace.logits, classes) == label ? 1 : 0};
}

Status Trainer::evaluate(uint32_t step, int32_t samples, const SampleSource& source) {
  estimation_.step = step;
  const int32_t chunks = chunks_for(setup_.executor.workers, samples, most_table_queries());
  Job job = {this, &source, chunks};
  clear_added();
  for (int32_t i = 0; i < setup_.executor.workers; ++i) statuses_[i] = {};
  const auto task = [](void* argument, int32_t index, int32_t worker) {
    Job& j = *static_cast<Job*>(argument);
    Trainer& trainer = *j.trainer;
    if (!trainer.statuses_[worker].ok()) return;
    trainer.evaluate_queries(j, index / j.chunks_a_sample, index % j.chunks_a_sample, worker);
  };
  if (!setup_.executor.run(setup_.executor.context, samples * chunks, task, &job, true)) return {Code::cancelled};
  return first_error(statuses_, setup_.executor.workers);
}

// loss -> loss - baseline, bounded so that a sum over the queries fits int32. Coordinates have no sum, and
// no baseline but the clean loss.
void Trainer::to_differences(int32_t samples) {
  for (int32_t table = 0; table < table_count(); ++table) {
    const int32_t queries = table_queries(table);
    if (queries == 0) continue;
    if (adds_up(table)) {
      join_added(table);
      continue;
    }
    const int32_t bound = is_coordinate_wise() ? INT32_MAX : INT32_MAX / queries;
    for (int32_t n = 0; n < samples; ++n) {
      int32_t* row = losses(table, n);
      int64_t baseline = samples_[n].loss;
      if (options_.baseline == Baseline::leave_one_out && !is_coordinate_wise()) {
        baseline = 0;
        for (int32_t q = 0; q < queries; ++q) baseline += row[q];
        baseline = divide_rounded(baseline, queries);
      }
      for (int32_t q = 0; q < queries; ++q) {
        const int64_t difference = row[q] - baseline;
        row[q] = static_cast<int32_t>(difference > bound ? bound : (difference < -bound ? -bound : difference));
      }
    }
  }
}

void Trainer::average_over_batch(int32_t table, int32_t samples) {
  const int32_t queries = table_queries(table);
  for (int32_t q = 0; q < queries; ++q) {
    int64_t sum = 0;
    for (int32_t n = 0; n < samples; ++n) sum += losses(table, n)[q];
    averages_[q] = static_cast<int32_t>(divide_rounded(sum, samples));
  }
}

UpdateInput Trainer::update_input(const Layer& layer, float learning_rate, int32_t samples) const {
  return {learning_rate, samples, shares_perturbations(layer.estimator) ? 1 : samples};
}

Status Trainer::check_memories() const {
  for (int64_t i = 0; i < memories_.count; ++i) {
    if (!is_finite(memories_.values[i])) return {Code::update_memory};
  }
  const bool counted = memories_.count == 0 || (memories_.values[0] >= 0.0f && memories_.values[0] <= most_updates);
  return counted ? Status{} : Status{Code::update_memory};
}

UpdateMemory Trainer::memory_of(int32_t layer) const {
  if (memories_.count == 0) return {};
  float* values = memories_.values + 1;
  for (int32_t i = 0; i < layer; ++i) values += update_memory_values(options_, layers_[i]);
  UpdateMemory memory = update_memory_in(values, options_, layers_[layer]);
  memory.updates = static_cast<int32_t>(memories_.values[0]);
  return memory;
}

Status Trainer::estimate(uint32_t step, int32_t samples, const SampleSource& source, int32_t layer) {
  if (setup_.compact) return {Code::estimate_compact};
  if (samples < 1 || samples > setup_.batch) return {Code::batch_size};
  if (layer < 0 || layer >= setup_.layer_count) return {Code::layer_not_trainable, layer};
  PMT_RETURN_IF_ERROR(evaluate(step, samples, source));
  to_differences(samples);
  estimated_ = &layers_[layer];
  return sum_gradients(layer, {0, estimated_->channels}, samples, source);
}

Status Trainer::step(uint32_t step, float learning_rate, int32_t samples, const SampleSource& source,
                     StepResult* result) {
  if (samples < 1 || samples > setup_.batch) return {Code::batch_size};
  if (!is_finite(learning_rate) || learning_rate < 0.0f) return {Code::option_learning_rate};
  PMT_RETURN_IF_ERROR(evaluate(step, samples, source));
  *result = {0, 0, 0};
  for (int32_t n = 0; n < samples; ++n) {
    result->loss_sum += samples_[n].loss;
    result->correct += samples_[n].correct;
  }
  to_differences(samples);
  ++steps_begun_;
  for (int32_t i = setup_.layer_count - 1; i >= 0; --i) {
    PMT_RETURN_IF_ERROR(update(i, learning_rate, samples, source, &result->changed));
    repack_layer(network_, layers_[i].op);
  }
  if (memories_.count > 0) memories_.values[0] += 1.0f;
  return {};
}

}  // namespace pmt
