#include "core/learner/channel_phase.hpp"

#include "core/base/arithmetic.hpp"

namespace pmt {

// The samples' list stands behind the layer that takes most.
Status ChannelPhase::open(const ChannelPhaseSetup& setup, uint8_t* memory, size_t bytes) {
  setup_ = setup;
  memory_ = memory;
  bytes_ = bytes;
  lists_at_ = 0;
  Arena lists;
  lists.take<int32_t>(MemoryPart::lists, setup.samples->capacity());
  list_bytes_ = lists.used();
  kept_op_ = 0;
  kept_bytes_ = keeps() ? kept_bytes(model()) : 0;
  first_window_op_ = -1;
  size_t most = 0;
  for (int32_t i = 0; i < model().op_count(); ++i) {
    if (!is_aligned_op(model(), i)) continue;
    if (first_window_op_ < 0 && aligns_windows(i)) first_window_op_ = i;
    PMT_RETURN_IF_ERROR(plan_layer(i));
    if (lists_at_ > most) most = lists_at_;
    kept_op_ = keeps() ? i : 0;
  }
  lists_at_ = most;
  samples_ = reinterpret_cast<int32_t*>(memory + lists_at_);
  return bytes_needed() <= bytes ? Status{} : Status{Code::arena_too_small};
}

// Places activations and, behind them, what the layer is measured with; lists_at_ is where that ends.
Status ChannelPhase::plan_layer(int32_t op) {
  Predictor& predictor = *setup_.predictor;
  size_t left = 0;
  if (leaves_at(op) > kept_op()) {
    PMT_RETURN_IF_ERROR(predictor.stop_at(kept_op()));
    left = predictor.room();
  }
  PMT_RETURN_IF_ERROR(predictor.stop_at(op));
  predictor.place(memory_);
  const Kernels& kernels = *predictor.network().kernels;
  const int32_t channels = model().output_of(model().op(op)).channels;
  const size_t activations = predictor.room() < left ? left : predictor.room();
  Arena arena(memory_ + activations, activations < bytes_ ? bytes_ - activations : 0), of_windows = arena,
                                                                                       of_weighing = arena;
  if (aligns_windows(op)) windows_.take(model(), op, tells_noise(op), of_windows);
  if (may_weigh(op)) weighing_.take(model(), op, *setup_.samples, of_weighing);
  meter_.take(round_up(channels, kernels.channel_multiple), 1, static_cast<size_t>(kernels.alignment), arena);
  found_ = arena.take<ChannelStatistics>(int64_t{ImageGroups::usual} * channels);
  shrunk_ = arena.take<ChannelStatistics>(channels);
  if (arena.used() < of_windows.used()) arena = of_windows;
  if (arena.used() < of_weighing.used()) arena = of_weighing;
  lists_at_ = activations + arena.used();
  return {};
}

void ChannelPhase::start(const LearnerParameters& parameters, int32_t images) {
  parameters_ = &parameters;
  count_ = setup_.samples->count(LearnerSamples::Use::alignment, samples_);
  for (int64_t i = 0; i < images; ++i) samples_[i] = samples_[i * count_ / images];
  count_ = images;
  probed_ = weighs() ? probed_images(model(), count_) : 0;
  groups_ = count_ < ImageGroups::usual ? count_ : ImageGroups::usual;
  for (int32_t g = 0; g < groups_; ++g) images_[g] = (count_ - g + groups_ - 1) / groups_;
  clean_ = setup_.clean;
  windows_.start(setup_.clean_windows);
  part_ = Part::next;
  op_ = group_ = image_ = kept_op_ = 0;
}

Status ChannelPhase::step(bool* done) {
  while (op_ < model().op_count() && !is_aligned_op(model(), op_)) ++op_;
  *done = op_ == model().op_count();
  if (*done) return {};
  if (part_ == Part::next) part_ = aligns_windows(op_) ? Part::windows : part_after_windows();
  if (linked::reliability && part_ == Part::weighing) return weigh_sample();
  if (!linked::windows || part_ != Part::correction) return measure_sample();
  if (!windows_.align_group(model(), op_, parameters_->channels(op_))) part_ = part_after_windows();
  return {};
}

ChannelPhase::Part ChannelPhase::part_after_windows() const {
  return may_weigh(op_) && windows_.strength() > 0.0f ? Part::weighing : Part::channels;
}

// Twice as many forwards as images, spread over all samples, which may be in the order of their classes: each without,
// then with the noise probe. They begin with the frame, also where activations are kept.
Status ChannelPhase::weigh_sample() {
  Predictor& predictor = *setup_.predictor;
  const int32_t image = image_ / 2;
  const auto sample = [&](int32_t i) { return samples_[int64_t{i} * count_ / probed_]; };
  if (image_ == 0) {
    PMT_RETURN_IF_ERROR(plan_layer(op_));
    weighing_.begin(model(), op_);
  }
  PMT_RETURN_IF_ERROR(predictor.stop_at(op_));
  predictor.place(memory_);
  PMT_RETURN_IF_ERROR(setup_.samples->read(sample(image), predictor.input()));
  if (image_ % 2 == 1) {
    const int32_t next = sample(image + 1 < probed_ ? image + 1 : 0);
    PMT_RETURN_IF_ERROR(weighing_.add_probe(model(), *setup_.samples, next, predictor.input()));
  }
  predictor.run(0, op_);
  weighing_.add(predictor.features());
  if (++image_ < 2 * probed_) return {};
  weighing_.weigh(model(), op_, probed_, windows_.strength(), parameters_->channels(op_));
  image_ = 0;
  part_ = Part::channels;
  return {};
}

Status ChannelPhase::measure_sample() {
  const Predictor& predictor = *setup_.predictor;
  const bool of_windows = linked::windows && part_ == Part::windows;
  const OpRecord& op = model().op(op_);
  const TensorRecord& map = of_windows ? model().input_of(op) : model().output_of(op);
  const int64_t values = int64_t{images_[group_]} * map.height * map.width;
  if (values > (of_windows ? WindowMeter::most_values : most_measured_values)) return {Code::batch_size, op_};
  if (image_ == 0) {
    if (group_ == 0) PMT_RETURN_IF_ERROR(plan_layer(op_));
    of_windows ? windows_.begin(model(), op_, group_) : meter_.begin(predictor.network(), op_, clean_, true);
  }
  const int32_t left = leaves_at(op_);
  if (left > kept_op()) PMT_RETURN_IF_ERROR(forward_sample(kept_op(), left, kept_op()));
  PMT_RETURN_IF_ERROR(forward_sample(left, op_, op_));
  of_windows ? windows_.add(predictor.features())
             : meter_.add(predictor.network(), predictor.plan(), op_, predictor.memory(), 0);
  if (++image_ < images_[group_]) return {};
  image_ = 0;
  of_windows ? windows_.conclude(model(), op_, group_, images_[group_])
             : meter_.conclude(predictor.network(), op_, values, found_ + int64_t{group_} * map.channels);
  if (++group_ == groups_) of_windows ? shrink_windows() : align();
  return {};
}

// Activations inside a stream are brought behind it in the plan in which they were kept: where the stream ends, for a
// forward to an op behind it. Else the op before which they are.
int32_t ChannelPhase::leaves_at(int32_t op) const {
  const int32_t behind = keeps() ? setup_.predictor->behind_stream(kept_op()) : 0;
  return behind <= op ? behind : kept_op();
}

// A part of a sample's forward, in the plan of passes to `planned`. Groups are spread over all samples, which may be in
// the order of their classes.
Status ChannelPhase::forward_sample(int32_t begin, int32_t end, int32_t planned) {
  Predictor& predictor = *setup_.predictor;
  PMT_RETURN_IF_ERROR(predictor.stop_at(planned));
  predictor.place(memory_);
  const int32_t image = image_ * groups_ + group_;
  int8_t* const kept = setup_.external + int64_t{image} * kept_bytes_;
  if (begin == 0) {
    PMT_RETURN_IF_ERROR(setup_.samples->read(samples_[image], predictor.input()));
  } else {
    copy_activations(model(), predictor.plan(), predictor.memory(), begin, kept, true);
  }
  predictor.run(begin, end);
  if (keeps() && end > begin) copy_activations(model(), predictor.plan(), predictor.memory(), end, kept, false);
  return {};
}

void ChannelPhase::end_measurement(Part next) {
  group_ = 0;
  kept_op_ = keeps() ? op_ : 0;
  part_ = next;
}

void ChannelPhase::shrink_windows() {
  windows_.shrink(model(), op_, {groups_, images_});
  end_measurement(Part::correction);
}

void ChannelPhase::align() {
  const int32_t channels = model().output_of(model().op(op_)).channels;
  shrink_channels(channels, clean_, {groups_, images_}, found_, shrunk_);
  align_layer(model(), op_, clean_, shrunk_, parameters_->channels(op_));
  clean_ += channels;
  end_measurement(Part::next);
  ++op_;
}

}  // namespace pmt
