#include "core/learner/epoch_phase.hpp"

#include "core/learn/schedule.hpp"

namespace pmt {

Status EpochPhase::open(const EpochSetup& setup, int32_t block, const Model& model, const Kernels& kernels,
                        const LearnerSamples& samples, const LayerStorage* storage, void* memory, size_t bytes) {
  if (setup.epochs < 0 || int64_t{setup.epochs} * samples.capacity() > INT32_MAX) return {Code::option_value};
  is_binary_ = is_binary(model);
  if (is_binary_ && !takes_targets(setup.options->loss)) return {Code::label_targets};
  setup_ = setup;
  samples_ = &samples;
  step_ = sample_ = 0;
  const TrainedLayers& layers = setup.layers.blocks[block];
  TrainerSetup trainer = {&model,       &kernels, setup.options, layers.ops,
                          layers.count, storage,  setup.batch,   sequential_executor()};
  trainer.compact = true;
  trainer.streams = layers.streams;
  trainer.stream_count = layers.stream_count;
  const Status status = trainer_.open(trainer, memory, bytes);
  if (!status.ok() && status.code != Code::arena_too_small) return status;
  const size_t at = trainer_.bytes_needed();
  Arena lists(static_cast<uint8_t*>(memory) + at, at < bytes ? bytes - at : 0);
  order_ = lists.take<int32_t>(MemoryPart::lists, samples.capacity());
  stage_ = lists.take<uint8_t>(static_cast<int64_t>(samples.stage_bytes()));
  needed_ = at + lists.used();
  on_device_ = trainer_.bytes_on_device() + device_bytes(lists);
  if (!status.ok() || !lists.fits()) return {Code::arena_too_small};
  count_ = samples.count(LearnerSamples::Use::head);
  return {};
}

void EpochPhase::order_samples() {
  (void)samples_->count(LearnerSamples::Use::head, order_);
  shuffle(setup_.options->seed, static_cast<uint32_t>(step_ / steps_per_epoch()), order_, count_);
}

int32_t EpochPhase::batch_samples() const {
  const int32_t left = count_ - batch_begin();
  return left < setup_.batch ? left : setup_.batch;
}

bool EpochPhase::read_sample(void* context, int32_t index, int8_t* image, int32_t* label) {
  EpochPhase& self = *static_cast<EpochPhase*>(context);
  *label = self.record(index).label;
  self.read_ = self.samples_->read(self.order_[self.batch_begin() + index], image, self.stage_);
  return self.read_.ok();
}

bool EpochPhase::read_target(void* context, int32_t index, float* target) {
  *target = static_cast<float>(static_cast<const EpochPhase*>(context)->record(index).label);
  return true;
}

Status EpochPhase::step(bool* done) {
  const int32_t steps = setup_.epochs * steps_per_epoch();
  *done = step_ == steps;
  if (*done) return {};
  if (sample_ == 0 && step_ % steps_per_epoch() == 0) order_samples();
  const int32_t samples = batch_samples();
  const SampleSource source = {this, read_sample, nullptr, is_binary_ ? read_target : nullptr};
  read_ = {};
  Status status = {};
  if (sample_ < samples) {
    status = trainer_.query(static_cast<uint32_t>(step_), sample_++, samples, source);
  } else {
    const float rate = learning_rate({setup_.learning_rate, setup_.final_learning_rate, steps}, step_);
    StepResult result = {};
    status = trainer_.update(rate, samples, source, &result);
    sample_ = 0;
    ++step_;
  }
  return read_.ok() ? status : read_;
}

}  // namespace pmt
