#include "core/align/channel_reliability.hpp"

#include "core/align/covariance_alignment.hpp"
#include "core/base/arithmetic.hpp"

namespace pmt {

bool mixes_channels(const Model& model, int32_t op) {
  if (op < 0 || op + 1 >= model.op_count()) return false;
  const OpRecord& record = model.op(op);
  const bool mixes = record.kind == OpKind::conv2d || record.kind == OpKind::fully_connected;
  return mixes && record.input[0] != model.header().input_tensor;
}

Status ReliabilityMeter::open(const StatisticsSetup& setup, void* memory, size_t bytes) {
  const Model& model = *setup.model;
  PMT_RETURN_IF_ERROR(open_forwards(setup, memory, bytes));
  int32_t most_channels = 0;
  int32_t most_elements = 0;
  for (int32_t i = 0; i < model.op_count(); ++i) {
    if (!mixes_channels(model, i)) continue;
    const TensorRecord& in = model.input_of(model.op(i));
    if (in.channels > most_channels) most_channels = in.channels;
    if (element_count(in) > most_elements) most_elements = element_count(in);
  }
  pairs_ = arena().take<Pair>(workers());
  for (int32_t i = 0; i < workers(); ++i) {
    const Pair pair = {arena().take<int8_t>(most_elements), false, arena().take<PairSums>(most_channels)};
    if (arena().fits()) pairs_[i] = pair;
  }
  return arena().fits() ? Status{} : Status{Code::arena_too_small};
}

void ReliabilityMeter::add_sample(int32_t op, const Activations& memory, int32_t worker) {
  const OpRecord& record = model().op(op);
  const TensorRecord& in = model().input_of(record);
  const int8_t* input = memory.tensor(plan(), Pass::main, record.input[0]);
  Pair& pair = pairs_[worker];
  pair.awaited = !pair.awaited;
  if (pair.awaited) {
    __builtin_memcpy(pair.first, input, static_cast<size_t>(element_count(in)));
    return;
  }
  const int32_t positions = in.height * in.width;
  for (int32_t p = 0; p < positions; ++p) {
    const int8_t* first = pair.first + p * in.channels;
    const int8_t* second = input + p * in.channels;
    for (int32_t c = 0; c < in.channels; ++c) {
      PairSums& sums = pair.sums[c];
      sums.first += first[c];
      sums.second += second[c];
      sums.first_squares += first[c] * first[c];
      sums.second_squares += second[c] * second[c];
      sums.products += first[c] * second[c];
    }
  }
}

void ReliabilityMeter::conclude(const TensorRecord& in, int64_t values, ChannelReliability* found) const {
  for (int32_t c = 0; c < in.channels; ++c) {
    PairSums total = {};
    for (int32_t w = 0; w < workers(); ++w) {
      const PairSums& sums = pairs_[w].sums[c];
      total.first += sums.first;
      total.second += sums.second;
      total.first_squares += sums.first_squares;
      total.second_squares += sums.second_squares;
      total.products += sums.products;
    }
    const float product = to_float(values * total.products - total.first * total.second);
    const float first = to_float(values * total.first_squares - total.first * total.first);
    const float second = to_float(values * total.second_squares - total.second * total.second);
    const bool constant = !(first > 0.0f) || !(second > 0.0f);
    found[c].mean = to_float(total.first) / to_float(values);
    found[c].correlation =
        constant ? 1.0f : clamp(product / (__builtin_sqrtf(first) * __builtin_sqrtf(second)), 0.0f, 1.0f);
  }
}

Status ReliabilityMeter::measure(int32_t op, int32_t samples, const SampleSource& source, ChannelReliability* found) {
  PMT_RETURN_IF_ERROR(check(op));
  const Model& model = this->model();
  if (!mixes_channels(model, op)) return {Code::layer_not_trainable, op};
  const TensorRecord& in = model.input_of(model.op(op));
  const int64_t values = int64_t{samples / 2} * in.height * in.width;
  if (samples < 2 || samples % 2 != 0 || values > most_values) return {Code::batch_size, op};
  for (int32_t w = 0; w < workers(); ++w) {
    pairs_[w].awaited = false;
    for (int32_t c = 0; c < in.channels; ++c) pairs_[w].sums[c] = {};
  }
  const auto add = [&](const Activations& memory, int32_t worker) { add_sample(op, memory, worker); };
  PMT_RETURN_IF_ERROR(run(op, samples, source, add, 2));
  conclude(in, values, found);
  return {};
}

namespace {

// shares[i] of every input channel; false where all are 0.
bool relative_shares(const ChannelReliability* found, int32_t channels, float strength, float* shares) {
  float largest = 0.0f;
  for (int32_t i = 0; i < channels; ++i) {
    shares[i] = 1.0f - strength * (1.0f - found[i].correlation);
    largest = shares[i] > largest ? shares[i] : largest;
  }
  if (!(largest > 0.0f)) return false;
  for (int32_t i = 0; i < channels; ++i) shares[i] /= largest;
  return true;
}

}  // namespace

int32_t weighing_floats(const Model& model, int32_t op) {
  return channel_weights(model, model.op(op), 0).count + 2 * model.input_of(model.op(op)).channels;
}

void weigh_channels(const Model& model, int32_t op, const ChannelReliability* found, float strength,
                    const WritableLayer& layer, float* scratch) {
  const OpRecord& record = model.op(op);
  const int32_t channels = model.input_of(record).channels;
  float* means = scratch;
  float* shares = means + channels;
  float* weights = shares + channels;
  for (int32_t i = 0; i < channels; ++i) means[i] = found[i].mean;
  if (!relative_shares(found, channels, strength, shares)) return;
  for (int32_t c = 0; c < model.output_of(record).channels; ++c) {
    if (channel_is_dead(layer.weight_scales[c])) continue;
    const ChannelWeights at = channel_weights(model, record, c);
    for (int32_t i = 0; i < at.count; ++i) {
      weights[i] = to_float(layer.weights[at.first + i * at.stride]) * shares[i % channels];
    }
    write_mapped_channel(model, record, c, {weights, means, channels}, layer);
  }
}

}  // namespace pmt
