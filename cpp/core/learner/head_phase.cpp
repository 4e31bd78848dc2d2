#include "core/learner/head_phase.hpp"

namespace pmt {
namespace {

constexpr int32_t block = 8;  // samples whose logits are in memory at once

}  // namespace

Status HeadPhase::open(const HeadPhaseSetup& setup, void* memory, size_t bytes) {
  setup_ = setup;
  chosen_ = false;
  filled_ = 0;
  const Model& model = *setup.predictor->network().model;
  const LearnerSamples& all = *setup.samples;
  const int32_t last = setup.predictor->last(), most = all.capacity();
  features_ = head_features(model, last);
  Arena arena(memory, bytes);
  rows_ = arena.take<int8_t>(int64_t{most} * features_);
  places_ = arena.take<int32_t>(MemoryPart::lists, most);
  folds_ = arena.take<uint8_t>(MemoryPart::lists, most);
  targets_ = is_binary(model) ? arena.take<float>(MemoryPart::tables, most) : nullptr;
  count_ = arena.fits() ? all.count(LearnerSamples::Use::head, places_) : 0;
  for (int32_t i = 0; i < count_ && targets_ != nullptr; ++i) targets_[i] = static_cast<float>(all[places_[i]].label);
  const int32_t folds = assign_folds(arena);
  const Loss loss = is_binary(model) ? Loss::binary_cross_entropy : Loss::cross_entropy;
  const HeadSamples samples = {{this, read_features, targets_}, arena.fits() ? count_ : most, folds_, folds, loss};
  const size_t taken = arena.used();
  const HeadSetup head = {&model, last, setup.layer, samples, block, sequential_executor()};
  const Status opened = solver_.open(head, static_cast<uint8_t*>(memory) + taken, taken < bytes ? bytes - taken : 0);
  needed_ = taken + solver_.bytes_needed();
  on_device_ = device_bytes(arena) + solver_.bytes_on_device();
  solver_.start_choice();
  return opened;
}

// In memory that the solver takes after it, and more of it: it holds the head several times, as floats.
int32_t HeadPhase::assign_folds(Arena scratch) {
  const Model& model = *setup_.predictor->network().model;
  const FoldSamples samples = {this, read_fold_sample, count_, label_count(model)};
  auto* const counts = scratch.take<int32_t>(fold_counts(samples.classes, head_folds));
  return scratch.fits() ? assign_head_folds(samples, counts, folds_) : 0;
}

// Copies are one unit, whichever of them has a label.
FoldSample HeadPhase::read_fold_sample(void* context, int32_t index) {
  const HeadPhase& self = *static_cast<const HeadPhase*>(context);
  const LearnerSamples& all = *self.setup_.samples;
  const SampleRecord& record = all[self.places_[index]];
  int32_t first = index;
  for (int32_t i = index; i-- > 0 && self.places_[i] >= record.copy_of;) {
    if (all[self.places_[i]].copy_of == record.copy_of) first = i;
  }
  return {record.label, first};
}

bool HeadPhase::read_features(void* context, int32_t index, int8_t* row, int32_t* label) {
  const HeadPhase& self = *static_cast<const HeadPhase*>(context);
  const auto count = static_cast<size_t>(self.features_);
  __builtin_memcpy(row, self.rows_ + static_cast<size_t>(index) * count, count);
  *label = (*self.setup_.samples)[self.places_[index]].label;
  return true;
}

Status HeadPhase::add_features() {
  const Predictor& predictor = *setup_.predictor;
  PMT_RETURN_IF_ERROR(setup_.samples->read(places_[filled_], predictor.input()));
  predictor.run();
  const auto count = static_cast<size_t>(features_);
  __builtin_memcpy(rows_ + static_cast<size_t>(filled_) * count, predictor.features(), count);
  ++filled_;
  return {};
}

Status HeadPhase::step(bool* done) {
  *done = false;
  if (filled_ < count_) return add_features();
  bool finished = false;
  PMT_RETURN_IF_ERROR(solver_.step(&finished));
  *done = finished && chosen_;
  if (finished && !chosen_) {
    chosen_ = true;
    solver_.start_solution(solver_.strength());
  }
  return {};
}

}  // namespace pmt
