#include "core/learner/channel_phase.hpp"

namespace pmt {

Status ChannelPhase::open(const ChannelPhaseSetup& setup, Arena& activations, void* memory, size_t bytes) {
  setup_ = setup;
  const Model& model = *setup.model;
  int32_t most_channels = 0;
  for (int32_t i = 0; i < model.op_count(); ++i) {
    const int32_t channels = model.output_of(model.op(i)).channels;
    if (is_aligned_op(model, i) && channels > most_channels) most_channels = channels;
  }
  Arena state(memory, bytes);
  samples_ = state.take<int32_t>(MemoryPart::lists, setup.most_samples);
  found_ = state.take<ChannelStatistics>(int64_t{ImageGroups::usual} * most_channels);
  shrunk_ = state.take<ChannelStatistics>(most_channels);
  StatisticsSetup meter = {&model, setup.kernels, sequential_executor()};
  meter.activations = &activations;
  const size_t taken = (state.used() + image_alignment - 1) / image_alignment * image_alignment;
  const size_t left = taken < bytes ? bytes - taken : 0;
  const Status opened = meter_.open(meter, static_cast<uint8_t*>(memory) + taken, left);
  needed_ = taken + meter_.bytes_needed();
  on_device_ = device_bytes(state) + meter_.bytes_on_device();
  return opened;
}

void ChannelPhase::start(const LearnerParameters& parameters) {
  parameters_ = &parameters;
  count_ = 0;
  const LearnerSamples& all = *setup_.samples;
  for (int32_t i = all.next(0, LearnerSamples::Use::alignment); i < all.count();
       i = all.next(i + 1, LearnerSamples::Use::alignment)) {
    samples_[count_++] = i;
  }
  groups_ = count_ < ImageGroups::usual ? count_ : ImageGroups::usual;
  for (int32_t g = 0; g < groups_; ++g) images_[g] = (count_ - g + groups_ - 1) / groups_;
  clean_ = setup_.clean;
  op_ = group_ = image_ = 0;
}

bool ChannelPhase::read_sample(void* context, int32_t index, int8_t* image, int32_t* label) {
  ChannelPhase& self = *static_cast<ChannelPhase*>(context);
  *label = 0;
  self.read_ = self.setup_.samples->read(index, image);
  return self.read_.ok();
}

Status ChannelPhase::step(bool* done) {
  const Model& model = *setup_.model;
  *done = false;
  while (op_ < model.op_count() && !is_aligned_op(model, op_)) ++op_;
  if (op_ >= model.op_count()) {
    *done = true;
    return {};
  }
  if (image_ == 0) PMT_RETURN_IF_ERROR(meter_.begin(op_, images_[group_], clean_));
  read_ = {};
  // Groups are spread over all samples, which may be in the order of their classes.
  const Status added = meter_.add(samples_[image_ * groups_ + group_], {this, read_sample});
  if (!read_.ok()) return read_;
  PMT_RETURN_IF_ERROR(added);
  if (++image_ < images_[group_]) return {};
  image_ = 0;
  const int32_t channels = model.output_of(model.op(op_)).channels;
  meter_.conclude(found_ + int64_t{group_} * channels);
  if (++group_ == groups_) align();
  return {};
}

void ChannelPhase::align() {
  const Model& model = *setup_.model;
  const int32_t channels = model.output_of(model.op(op_)).channels;
  shrink_channels(channels, clean_, {groups_, images_}, found_, shrunk_);
  align_layer(model, op_, clean_, shrunk_, parameters_->channels(op_));
  clean_ += channels;
  group_ = 0;
  ++op_;
}

}  // namespace pmt
