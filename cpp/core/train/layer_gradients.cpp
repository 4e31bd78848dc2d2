// The second half of a step: the gradient of a layer and its update, a group of channels after another.
// One group where there is memory for all; a smaller one takes the signs of the queries again. That a
// group has been updated does not change the gradient of the next: a channel's nodes depend on its own
// weights, and what depends on all, a head's logits, is remembered.
#include "core/base/arithmetic.hpp"
#include "core/net/stream_run.hpp"
#include "core/train/trainer.hpp"

namespace pmt {

struct Trainer::GradientJob {
  Trainer* trainer;
  const SampleSource* source;
  int32_t layer;
  Channels channels;
};

namespace {

// Compact, of one group: with a batch, and at least with one sample.
constexpr int32_t batch_bytes = 1 << 16;
constexpr int32_t gap_bytes = 1 << 14;

int64_t larger(int64_t a, int64_t b) { return a < b ? b : a; }

// Sums of one channel: its weights, where they are trained, and its bias.
int64_t channel_sums(const TrainerOptions& options, const Layer& layer) {
  return trained_weights(options, layer) / layer.channels + 1;
}

// At most `bytes` of whole channels, at least one.
int64_t sums_within(const TrainerOptions& options, const Layer& layer, int32_t bytes) {
  const int64_t one = channel_sums(options, layer);
  const int64_t channels = bytes / (static_cast<int64_t>(sizeof(int64_t)) * one);
  return one * (channels < 1 ? 1 : (channels > layer.channels ? layer.channels : channels));
}

}  // namespace

// Memory for the sums: of whole layers for every worker, of a group for a batch on a device, or none
// where a device's activations leave room.
void Trainer::open_sums() {
  sum_count_ = 0;
  const int32_t least = setup_.sum_bytes > 0 ? setup_.sum_bytes : (setup_.batch == 1 ? gap_bytes : batch_bytes);
  for (int32_t i = 0; i < setup_.layer_count; ++i) {
    const Layer& layer = layers_[i];
    if (sums_lie_in_gaps()) {  // they may be larger
      const int64_t bytes = static_cast<int64_t>(sizeof(int64_t)) * sums_within(options_, layer, least);
      reserve_sums(layer, static_cast<int32_t>((bytes + 15) / 16 * 16));
    } else {
      sum_count_ = larger(sum_count_, setup_.compact ? sums_within(options_, layer, least)
                                                     : channel_sums(options_, layer) * layer.channels);
    }
  }
  sums_ = arena_.take<int64_t>(setup_.executor.workers * sum_count_);
  const bool head = layers_[setup_.layer_count - 1].estimator == Estimator::closed_form;
  head_gradients_ = arena_.take<int32_t>(setup_.compact && head ? setup_.batch * setup_.model->classes() : 0);
}

// Where a layer's sums lie among the activations: losses are all that the gradient of weights needs.
Plan::Gap Trainer::sum_gap(const Layer& layer) const {
  const bool all = layer.estimator == Estimator::weight_perturbation;
  return all ? Plan::Gap{0, plan_.bytes()} : plan_.gap(layer.op);
}

void Trainer::reserve_sums(const Layer& layer, int32_t bytes) {
  if (layer.estimator == Estimator::weight_perturbation) {
    plan_.reserve(bytes);
  } else {
    plan_.widen(layer.op, bytes);
  }
}

int64_t* Trainer::sum_memory(int32_t worker, const Layer& layer) const {
  if (!sums_lie_in_gaps()) return sums_ + worker * sum_count_;
  return reinterpret_cast<int64_t*>(workspaces_[worker].activations + sum_gap(layer).offset);
}

int32_t Trainer::channels_at_once(const Layer& layer) const {
  const int64_t sums = sums_lie_in_gaps() ? sum_gap(layer).bytes / static_cast<int32_t>(sizeof(int64_t)) : sum_count_;
  const int64_t channels = sums / channel_sums(options_, layer);
  return channels < layer.channels ? static_cast<int32_t>(channels) : layer.channels;
}

GradientSums Trainer::sums_of(int32_t worker, const Channels& channels, const Layer& layer) const {
  const int32_t end = clamp(channels.end, 0, layer.channels);
  const int64_t weights = (end - channels.begin) * (channel_sums(options_, layer) - 1);
  int64_t* start = sum_memory(worker, layer);
  return {options_.train_weights != 0 ? start : nullptr, start + weights, channels.begin, end};
}

void Trainer::clear_sums(const GradientJob& job, int32_t worker) const {
  const Layer& layer = layers_[job.layer];
  const int64_t count = (job.channels.end - job.channels.begin) * channel_sums(options_, layer);
  int64_t* sums = sum_memory(worker, layer);
  for (int64_t i = 0; i < count; ++i) sums[i] = 0;
}

// The main pass that a gradient needs; with one sample in all, once a layer.
bool Trainer::run_to_gradient(const GradientJob& job, int32_t sample, int32_t worker, int32_t* label) {
  const Layer& layer = layers_[job.layer];
  statuses_[worker] = read_sample(*job.source, sample, worker, label);
  if (!statuses_[worker].ok()) return false;
  const bool exact = layer.estimator == Estimator::closed_form;
  const int32_t end = plan_.streams(layer.op) ? plan_.segment_begin(layer.op) : layer.op + (exact ? 0 : 1);
  forward(network_, plan_, workspaces_[worker], 1, 0, end);
  return true;
}

// Row by row where the layer streams, else from the whole tensors.
void Trainer::add_nodes(const GradientJob& job, int32_t sample, int32_t worker, const GradientSums& sums) {
  const Layer& layer = layers_[job.layer];
  const Workspace& workspace = workspaces_[worker];
  const int32_t table = options_.scope == Scope::layer_wise ? job.layer : 0;
  NodeGradient gradient(estimation_, workspace, layer, static_cast<uint32_t>(sample), losses(table, sample), sums);
  const bool measures = input_squares_ != nullptr && job.channels.begin == 0;
  if (measures) input_squares_[sample] = 0;
  const auto add = [&](const LayerRows& rows) {
    gradient.add(rows);
    if (!measures) return;
    input_squares_[sample] += options_.train_weights != 0 ? free_input_squares(estimation_, layer, rows)
                                                          : free_nodes(estimation_, layer, rows);
  };
  if (!plan_.streams(layer.op)) {
    add(main_rows(estimation_, workspace, layer));
    return;
  }
  run_stream(*setup_.model, plan_, workspace, {Pass::main, 0}, plan_.segment_begin(layer.op), layer.op,
             [&](int32_t op, const OpImages& rows) {
               run_op(network_, op, rows, workspace.scratch_of(plan_, Pass::main, op));
               if (op == layer.op) add({rows.input[0], rows.output, rows.shape});
             });
}

void Trainer::add_gradient(const GradientJob& job, int32_t sample, int32_t worker) {
  const Layer& layer = layers_[job.layer];
  const Workspace& workspace = workspaces_[worker];
  const auto id = static_cast<uint32_t>(sample);
  const int32_t table = options_.scope == Scope::layer_wise ? job.layer : 0;
  const GradientSums sums = sums_of(worker, job.channels, layer);
  const bool weights = layer.estimator == Estimator::weight_perturbation;
  int32_t label = 0;
  if (!weights && ready_ != job.layer && !run_to_gradient(job, sample, worker, &label)) return;
  if (sums_lie_in_gaps()) {
    clear_sums(job, worker);
    ready_ = job.layer;
  }
  if (weights) {
    const int32_t* differences = shares_perturbations(layer.estimator) ? averages_ : losses(table, sample);
    add_weight_gradient(estimation_, workspace, layer, id, differences, sums);
  } else if (layer.estimator == Estimator::closed_form) {
    add_head(sample, worker, label, layer, sums);
  } else {
    add_nodes(job, sample, worker, sums);
  }
}

// The first group's update changes the logits: what they give for every sample is remembered.
void Trainer::add_head(int32_t sample, int32_t worker, int32_t label, const Layer& layer, const GradientSums& sums) {
  const Workspace& workspace = workspaces_[worker];
  if (!setup_.compact) {
    add_head_gradient(estimation_, workspace, layer, label, sums);
    return;
  }
  int32_t* gradient = head_gradients_ + static_cast<int64_t>(sample) * setup_.model->classes();
  if (!have_head_gradients_) head_gradient(estimation_, workspace, label, gradient);
  add_head_product(estimation_, workspace, layer, gradient, sums);
}

// The sums of a group over the batch, in the first worker's memory.
Status Trainer::sum_gradients(int32_t layer, const Channels& channels, int32_t samples, const SampleSource& source) {
  const int32_t workers = setup_.executor.workers;
  const int32_t table = options_.scope == Scope::layer_wise ? layer : 0;
  const bool shared = shares_perturbations(layers_[layer].estimator);
  GradientJob job = {this, &source, layer, channels};
  for (int32_t w = 0; w < workers; ++w) {
    statuses_[w] = {};
    if (!sums_lie_in_gaps()) clear_sums(job, w);
  }
  if (shared) average_over_batch(table, samples);
  const auto task = [](void* argument, int32_t index, int32_t worker) {
    const GradientJob& j = *static_cast<GradientJob*>(argument);
    if (j.trainer->statuses_[worker].ok()) j.trainer->add_gradient(j, index, worker);
  };
  setup_.executor.run(setup_.executor.context, shared || adds_up(table) ? 1 : samples, task, &job, false);
  const GradientSums total = sums_of(0, channels, layers_[layer]);
  const int64_t count = (total.end - total.begin) * channel_sums(options_, layers_[layer]);
  int64_t* sums = sum_memory(0, layers_[layer]);
  for (int32_t w = 1; w < workers; ++w) {
    const int64_t* others = sum_memory(w, layers_[layer]);
    for (int64_t i = 0; i < count; ++i) sums[i] += others[i];
  }
  leave_out_inactive(layers_[layer], total);
  have_head_gradients_ = true;
  return first_error(statuses_, workers);
}

// Squared norm of the noise in the sums of a layer, of its differences; summed sample by sample.
float Trainer::noise_of(int32_t layer, int32_t samples) const {
  const Layer& of = layers_[layer];
  const int32_t table = options_.scope == Scope::layer_wise ? layer : 0;
  const int32_t queries = query_count(estimation_, layers_[table]);
  const float share = direction_noise(estimation_, of);
  const auto freedom = static_cast<float>(measured_elements(estimation_, of) - 1);
  if (shares_perturbations(of.estimator)) {
    return share * freedom * in_squared_losses(difference_squares(options_, averages_, queries));
  }
  const bool node = of.estimator == Estimator::node_perturbation;
  const float inputs = options_.train_weights == 0 ? 1.0f : active_share(options_, of);
  float noise = 0.0f;
  for (int32_t n = 0; n < samples; ++n) {
    const float squares = in_squared_losses(difference_squares(options_, losses(table, n), queries));
    noise += squares * (node ? inputs * to_float(input_squares_[n]) : freedom);
  }
  return share * noise;
}

// The factor of measured gradient-norm scaling.
float Trainer::shrink(int32_t layer, int32_t samples, float squared_norm) const {
  const UpdateMemory memory = memory_of(layer);
  *memory.noise =
      remember_noise(*memory.noise, noise_of(layer, samples), squared_norm, options_.shrinkage_memory, memory.updates);
  return clamp(1.0f - *memory.noise, 0.0f, 1.0f);
}

// Updates a layer. Where the size of the step depends on all of the gradient, every group is summed up
// to be looked at, and, unless it is the only one or has been remembered, once more to be applied.
Status Trainer::update(int32_t index, float learning_rate, int32_t samples, const SampleSource& source,
                       int32_t* changed) {
  const Layer& layer = layers_[index];
  UpdateInput input = update_input(layer, learning_rate, samples);
  input.memory = memory_of(index);
  LayerUpdate update(estimation_, layer, input);
  const bool measures = input.memory.noise != nullptr && layer.estimator != Estimator::closed_form;
  const bool looks = update.looks() || measures;
  const int32_t at_once = channels_at_once(layer);
  ready_ = -1;
  have_head_gradients_ = false;
  float norm = 0.0f;
  for (int32_t c = 0; looks && c < layer.channels; c += at_once) {
    const Channels channels = {c, c + at_once < layer.channels ? c + at_once : layer.channels};
    PMT_RETURN_IF_ERROR(sum_gradients(index, channels, samples, source));
    const GradientSums sums = sums_of(0, channels, layer);
    if (measures) norm = squared_norm(estimation_, layer, sums, norm);
    update.look(sums);
  }
  if (measures) update.shrink(shrink(index, samples, norm));
  const bool have_sums = looks && (at_once == layer.channels || update.remembers());
  for (int32_t c = 0; c < layer.channels; c += at_once) {
    const Channels channels = {c, c + at_once < layer.channels ? c + at_once : layer.channels};
    if (!have_sums) PMT_RETURN_IF_ERROR(sum_gradients(index, channels, samples, source));
    *changed += update.apply(sums_of(0, channels, layer));
  }
  return {};
}

}  // namespace pmt
