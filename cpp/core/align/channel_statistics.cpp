#include "core/align/channel_statistics.hpp"

#include "core/base/arithmetic.hpp"

namespace pmt {

namespace {

constexpr float steps_per_deviation = 8.0f;
constexpr float narrowest_steps = 4.0f;  // the next deviation is at least this share of a step
constexpr float largest_gain = 16.0f;

int32_t saturated(int64_t value) {
  return static_cast<int32_t>(value > INT32_MAX ? INT32_MAX : (value < INT32_MIN ? INT32_MIN : value));
}

float accumulator_scale(const Model& model, const OpRecord& op, int32_t channel) {
  return model.input_of(op).scale * model.weight_scales(op)[channel];
}

}  // namespace

Status StatisticsMeter::open(const StatisticsSetup& setup, void* memory, size_t bytes) {
  if (reinterpret_cast<uintptr_t>(memory) % image_alignment != 0) return {Code::arena_alignment};
  const Model& model = *setup.model;
  arena_ = Arena(memory, bytes);
  PMT_RETURN_IF_ERROR(forwards_.open(setup, arena_));
  most_channels_ = 0;
  for (int32_t i = 0; i < model.op_count(); ++i) {
    const int32_t channels = round_up(model.output_of(model.op(i)).channels, setup.kernels->channel_multiple);
    if (has_weights(model.op(i)) && channels > most_channels_) most_channels_ = channels;
  }
  const auto alignment = static_cast<size_t>(setup.kernels->alignment);
  bias_ = arena_.take<int32_t>(most_channels_, alignment);
  scales_ = arena_.take<float>(most_channels_, alignment);
  centers_ = arena_.take<float>(most_channels_);
  steps_ = arena_.take<float>(most_channels_);
  sums_ = arena_.take<ChannelSums>(static_cast<int64_t>(forwards_.workers()) * most_channels_);
  const bool activations_fit = setup.activations == nullptr || setup.activations->fits();
  return arena_.fits() && activations_fit ? Status{} : Status{Code::arena_too_small};
}

// Centers the requantization of every channel on its guess. The center moves by whole biases; the one that
// results is kept.
void StatisticsMeter::center_on(int32_t index, const ChannelStatistics* guess, bool first) {
  const Model& model = forwards_.model();
  const OpRecord& op = model.op(index);
  const int32_t channels = model.output_of(op).channels;
  for (int32_t c = 0; c < most_channels_; ++c) {
    bias_[c] = 0;
    scales_[c] = 0.0f;
    if (c >= channels || channel_is_dead(model.weight_scales(op)[c])) continue;
    const float scale = accumulator_scale(model, op, c);
    const int32_t bias = forwards_.network().parameters[index].bias[c];
    const int32_t shift = round_bias(guess[c].mean / scale);
    bias_[c] = saturated(int64_t{bias} - shift);
    centers_[c] = to_float(int64_t{bias} - bias_[c]) * scale;
    // Rounding hid a deviation below a step: the mean is known to a step, the deviation is not.
    const float resolved = first ? 0.0f : steps_[c] / narrowest_steps;
    const float least = resolved > scale ? resolved : scale;
    const float deviation = guess[c].deviation;
    steps_[c] = (is_finite(deviation) && deviation > least ? deviation : least) / steps_per_deviation;
    scales_[c] = scale / steps_[c];
  }
}

void StatisticsMeter::add_sample(int32_t index, const Activations& memory, int32_t worker) {
  const Model& model = forwards_.model();
  const OpRecord& op = model.op(index);
  const TensorRecord& out = model.output_of(op);
  int8_t* output = memory.tensor(forwards_.plan(), Pass::main, op.output);
  const OpImages images = {1,
                           {memory.tensor(forwards_.plan(), Pass::main, op.input[0]), nullptr},
                           {0, 0},
                           output,
                           element_count(out),
                           op_shape(model, op)};
  run_requantized(forwards_.network(), index, images, {bias_, scales_}, memory.scratch);
  ChannelSums* sums = sums_of(worker);
  const int32_t positions = out.height * out.width;
  for (int32_t p = 0; p < positions; ++p) {
    const int8_t* values = output + p * out.channels;
    for (int32_t c = 0; c < out.channels; ++c) {
      sums[c].values += values[c];
      sums[c].squares += values[c] * values[c];
    }
  }
}

// The variance of a rounded value is 1/12 larger (Sheppard's correction).
void StatisticsMeter::conclude(int32_t index, int64_t values, ChannelStatistics* found) const {
  const Model& model = forwards_.model();
  const OpRecord& op = model.op(index);
  const float count = to_float(values);
  for (int32_t c = 0; c < model.output_of(op).channels; ++c) {
    found[c] = {0.0f, 0.0f};
    if (channel_is_dead(model.weight_scales(op)[c])) continue;
    ChannelSums total = {0, 0};
    for (int32_t w = 0; w < forwards_.workers(); ++w) {
      total.values += sums_of(w)[c].values;
      total.squares += sums_of(w)[c].squares;
    }
    const int64_t spread = values * total.squares - total.values * total.values;
    const float variance = to_float(spread) / (count * count) - 1.0f / 12.0f;
    found[c].mean = centers_[c] + steps_[c] * (to_float(total.values) / count);
    found[c].deviation = variance > 0.0f ? steps_[c] * __builtin_sqrtf(variance) : 0.0f;
  }
}

void StatisticsMeter::visit(void* context, const Activations& memory, int32_t worker) {
  const Job& job = *static_cast<Job*>(context);
  job.meter->add_sample(job.op, memory, worker);
}

Status StatisticsMeter::check(int32_t op, int32_t samples, Job* job) {
  PMT_RETURN_IF_ERROR(forwards_.check(op));
  const Model& model = forwards_.model();
  const TensorRecord& out = model.output_of(model.op(op));
  *job = {this, op, int64_t{samples} * out.height * out.width};
  return samples < 1 || job->values > most_values ? Status{Code::batch_size, op} : Status{};
}

void StatisticsMeter::start(const Job& job, const ChannelStatistics* guess, bool first) {
  center_on(job.op, guess, first);
  for (int64_t i = 0; i < int64_t{forwards_.workers()} * most_channels_; ++i) sums_[i] = {0, 0};
}

Status StatisticsMeter::measure(int32_t op, int32_t samples, const SampleSource& source, int32_t rounds,
                                const ChannelStatistics* guess, ChannelStatistics* found) {
  Job job = {};
  PMT_RETURN_IF_ERROR(check(op, samples, &job));
  if (rounds < 1) return {Code::batch_size, op};
  for (int32_t round = 0; round < rounds; ++round) {
    start(job, round == 0 ? guess : found, round == 0);
    PMT_RETURN_IF_ERROR(forwards_.run(op, samples, source, visit, &job));
    conclude(op, job.values, found);
  }
  return {};
}

Status StatisticsMeter::begin(int32_t op, int32_t samples, const ChannelStatistics* guess) {
  PMT_RETURN_IF_ERROR(check(op, samples, &round_));
  start(round_, guess, true);
  return {};
}

Status StatisticsMeter::add(int32_t sample, const SampleSource& source) {
  return forwards_.run_one(round_.op, sample, source, visit, &round_);
}

void align_layer(const Model& model, int32_t index, const ChannelStatistics* reference, const ChannelStatistics* found,
                 const WritableLayer& layer) {
  const OpRecord& op = model.op(index);
  const float input_scale = model.input_of(op).scale;
  for (int32_t c = 0; c < model.output_of(op).channels; ++c) {
    const float old = layer.weight_scales[c];
    if (channel_is_dead(old) || !(reference[c].deviation > 0.0f) || !(found[c].deviation > 0.0f)) continue;
    const float wanted = clamp(reference[c].deviation / found[c].deviation, 1.0f / largest_gain, largest_gain);
    const float scale = clamp(old * wanted, dead_channel_scale, largest_scale);
    const float gain = scale / old;
    const float constant = to_float(layer.bias[c]) * (input_scale * old);
    const float bias = reference[c].mean - gain * (found[c].mean - constant);
    layer.weight_scales[c] = scale;
    layer.bias[c] = round_bias(bias / (input_scale * scale));
  }
}

}  // namespace pmt
