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

int32_t probed_images(const Model& model, int32_t images) {
  int32_t most = smaller(images, 256);
  for (int32_t i = 0; i < model.op_count(); ++i) {
    if (!mixes_channels(model, i)) continue;
    const TensorRecord& in = model.input_of(model.op(i));
    most = static_cast<int32_t>(smaller(most, saturated(ReliabilitySums::most_values / in.height / in.width)));
  }
  return most;
}

ReliabilitySums::Size ReliabilitySums::larger(const Size& size, const Model& model, int32_t op) {
  const TensorRecord& in = model.input_of(model.op(op));
  return {pmt::larger(in.channels, size.channels), pmt::larger(element_count(in), size.elements)};
}

void ReliabilitySums::take(const Size& size, Arena& arena) {
  first_ = arena.take<int8_t>(size.elements);
  sums_ = arena.take<PairSums>(size.channels);
}

void ReliabilitySums::begin(const TensorRecord& input) {
  input_ = &input;
  awaited_ = false;
  for (int32_t c = 0; c < input.channels; ++c) sums_[c] = {};
}

void ReliabilitySums::add(const int8_t* input) {
  awaited_ = !awaited_;
  if (awaited_) {
    __builtin_memcpy(first_, input, static_cast<size_t>(element_count(*input_)));
    return;
  }
  const int32_t positions = input_->height * input_->width, channels = input_->channels;
  for (int32_t p = 0; p < positions; ++p) {
    const int8_t* first = first_ + p * channels;
    const int8_t* second = input + p * channels;
    for (int32_t c = 0; c < channels; ++c) {
      PairSums& sums = sums_[c];
      sums.first += first[c];
      sums.second += second[c];
      sums.first_squares += first[c] * first[c];
      sums.second_squares += second[c] * second[c];
      sums.products += first[c] * second[c];
    }
  }
}

void ReliabilitySums::merge(const ReliabilitySums& other) {
  for (int32_t c = 0; c < input_->channels; ++c) {
    PairSums& sums = sums_[c];
    const PairSums& more = other.sums_[c];
    sums.first += more.first;
    sums.second += more.second;
    sums.first_squares += more.first_squares;
    sums.second_squares += more.second_squares;
    sums.products += more.products;
  }
}

void ReliabilitySums::conclude(int64_t pairs, ChannelReliability* found) const {
  const int64_t values = pairs * input_->height * input_->width;
  for (int32_t c = 0; c < input_->channels; ++c) {
    const PairSums& total = sums_[c];
    const float product = to_float(values * total.products - total.first * total.second);
    const float first = to_float(values * total.first_squares - total.first * total.first);
    const float second = to_float(values * total.second_squares - total.second * total.second);
    const bool constant = !(first > 0.0f) || !(second > 0.0f);
    found[c].mean = to_float(total.first) / to_float(values);
    found[c].correlation =
        constant ? 1.0f : clamp(product / (__builtin_sqrtf(first) * __builtin_sqrtf(second)), 0.0f, 1.0f);
  }
}

Status ReliabilityMeter::open(const StatisticsSetup& setup, void* memory, size_t bytes) {
  PMT_RETURN_IF_ERROR(open_forwards(setup, memory, bytes));
  ReliabilitySums::Size size = {};
  for (int32_t i = 0; i < model().op_count(); ++i) {
    if (mixes_channels(model(), i)) size = ReliabilitySums::larger(size, model(), i);
  }
  sums_ = arena().take<ReliabilitySums>(workers());
  for (int32_t i = 0; i < workers(); ++i) {
    ReliabilitySums sums;
    sums.take(size, arena());
    if (arena().fits()) sums_[i] = sums;
  }
  return arena().fits() ? Status{} : Status{Code::arena_too_small};
}

Status ReliabilityMeter::measure(int32_t op, int32_t samples, const SampleSource& source, ChannelReliability* found) {
  PMT_RETURN_IF_ERROR(check(op));
  if (!mixes_channels(model(), op)) return {Code::layer_not_trainable, op};
  const uint32_t input = model().op(op).input[0];
  const TensorRecord& in = model().tensor(static_cast<int32_t>(input));
  const int64_t pairs = samples / 2;
  const bool fit = pairs * in.height * in.width <= ReliabilitySums::most_values;
  if (samples < 2 || samples % 2 != 0 || !fit) return {Code::batch_size, op};
  for (int32_t w = 0; w < workers(); ++w) sums_[w].begin(in);
  const auto add = [&](const Activations& memory, int32_t worker) {
    sums_[worker].add(memory.tensor(plan(), Pass::main, input));
  };
  PMT_RETURN_IF_ERROR(run(op, samples, source, add, 2));
  for (int32_t w = 1; w < workers(); ++w) sums_[0].merge(sums_[w]);
  sums_[0].conclude(pairs, found);
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
