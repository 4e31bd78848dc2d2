#include "core/align/channel_statistics.hpp"

#include "core/base/arithmetic.hpp"

namespace pmt {

namespace {

constexpr float steps_per_deviation = 8.0f;
constexpr float narrowest_steps = 4.0f;  // the next deviation is at least this share of a step
constexpr float largest_gain = 16.0f;

float accumulator_scale(const Model& model, const OpRecord& op, int32_t channel) {
  return model.input_of(op).scale * model.weight_scales(op)[channel];
}

int32_t widest_layer(const Model& model, int32_t multiple) {
  int32_t most = 0;
  for (int32_t i = 0; i < model.op_count(); ++i) {
    const int32_t channels = round_up(model.output_of(model.op(i)).channels, multiple);
    if (has_weights(model.op(i)) && channels > most) most = channels;
  }
  return most;
}

}  // namespace

void ChannelMeter::take(int32_t channels, int32_t workers, size_t alignment, Arena& arena) {
  channels_ = channels;
  workers_ = workers;
  bias_ = arena.take<int32_t>(channels, alignment);
  scales_ = arena.take<float>(channels, alignment);
  centers_ = arena.take<float>(channels);
  steps_ = arena.take<float>(channels);
  sums_ = arena.take<ChannelSums>(static_cast<int64_t>(workers) * channels);
}

// Centers the requantization of every channel on its guess. The center moves by whole biases; the one that
// results is kept.
void ChannelMeter::begin(const Network& network, int32_t index, const ChannelStatistics* guess, bool first) {
  for (int64_t i = 0; i < int64_t{workers_} * channels_; ++i) sums_[i] = {0, 0};
  const Model& model = *network.model;
  const OpRecord& op = model.op(index);
  const int32_t channels = model.output_of(op).channels;
  for (int32_t c = 0; c < channels_; ++c) {
    bias_[c] = 0;
    scales_[c] = 0.0f;
    if (c >= channels || channel_is_dead(model.weight_scales(op)[c])) continue;
    const float scale = accumulator_scale(model, op, c);
    const int32_t bias = network.parameters[index].bias[c];
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

void ChannelMeter::add(const Network& network, const Plan& plan, int32_t index, const Activations& memory,
                       int32_t worker) {
  const Model& model = *network.model;
  const OpRecord& op = model.op(index);
  const TensorRecord& out = model.output_of(op);
  int8_t* output = memory.tensor(plan, Pass::main, op.output);
  const OpImages images = {1,
                           {memory.tensor(plan, Pass::main, op.input[0]), nullptr},
                           {0, 0},
                           output,
                           element_count(out),
                           op_shape(model, op)};
  run_requantized(network, index, images, {bias_, scales_}, memory.scratch_of(plan, Pass::main, index));
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
void ChannelMeter::conclude(const Network& network, int32_t index, int64_t values, ChannelStatistics* found) const {
  const Model& model = *network.model;
  const OpRecord& op = model.op(index);
  const float count = to_float(values);
  for (int32_t c = 0; c < model.output_of(op).channels; ++c) {
    found[c] = {0.0f, 0.0f};
    if (channel_is_dead(model.weight_scales(op)[c])) continue;
    ChannelSums total = {0, 0};
    for (int32_t w = 0; w < workers_; ++w) {
      total.values += sums_of(w)[c].values;
      total.squares += sums_of(w)[c].squares;
    }
    const int64_t spread = values * total.squares - total.values * total.values;
    const float variance = to_float(spread) / (count * count) - 1.0f / 12.0f;
    found[c].mean = centers_[c] + steps_[c] * (to_float(total.values) / count);
    found[c].deviation = variance > 0.0f ? steps_[c] * __builtin_sqrtf(variance) : 0.0f;
  }
}

Status StatisticsMeter::open(const StatisticsSetup& setup, void* memory, size_t bytes) {
  PMT_RETURN_IF_ERROR(open_forwards(setup, memory, bytes));
  meter_.take(widest_layer(*setup.model, setup.kernels->channel_multiple), workers(),
              static_cast<size_t>(setup.kernels->alignment), arena());
  return arena().fits() ? Status{} : Status{Code::arena_too_small};
}

Status StatisticsMeter::measure(int32_t op, int32_t samples, const SampleSource& source, int32_t rounds,
                                const ChannelStatistics* guess, ChannelStatistics* found) {
  PMT_RETURN_IF_ERROR(check(op));
  const TensorRecord& out = model().output_of(model().op(op));
  const int64_t values = int64_t{samples} * out.height * out.width;
  if (samples < 1 || rounds < 1 || values > most_measured_values) return {Code::batch_size, op};
  const auto add = [&](const Activations& memory, int32_t worker) {
    meter_.add(network(), plan(), op, memory, worker);
  };
  for (int32_t round = 0; round < rounds; ++round) {
    meter_.begin(network(), op, round == 0 ? guess : found, round == 0);
    PMT_RETURN_IF_ERROR(run(op, samples, source, add));
    meter_.conclude(network(), op, values, found);
  }
  return {};
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
