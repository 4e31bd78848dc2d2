#include "core/learner/learner_samples.hpp"

#include "core/base/crc32.hpp"
#include "core/input/input_stage.hpp"
#include "core/zo/loss.hpp"

namespace pmt {
namespace {

constexpr int32_t held_out_every = 5;

}  // namespace

void LearnerSamples::take(int32_t capacity, Arena& arena) {
  capacity_ = capacity;
  records_ = arena.take<SampleRecord>(MemoryPart::lists, capacity);
}

void LearnerSamples::open(const FrameStore& frames, const Model& model, bool of_sensor, int32_t most_held_out) {
  frames_ = frames;
  model_ = &model;
  of_sensor_ = of_sensor;
  frame_bytes_ = static_cast<size_t>(of_sensor ? frame_bytes(model) : element_count(model.input()));
  most_held_out_ = most_held_out;
  clear();
}

Status LearnerSamples::add(const void* frame, int32_t label, Role role) {
  if (count_ == capacity_) return {Code::learner_full};
  const bool labeled = label != no_label;
  if (role == Role::hold_out && !labeled) return {Code::label_range};
  const uint32_t crc = crc32(static_cast<const uint8_t*>(frame), frame_bytes_);
  SampleRecord record = {crc, label, count_, 0, {}};
  int32_t labeled_ones = 1, held_ones = 0;          // with this one
  int32_t trained_of_class = 0, held_of_class = 0;  // before it
  for (int32_t i = count_ - 1; i >= 0; --i) {
    const SampleRecord& earlier = records_[i];
    if (earlier.crc32 == crc) record.copy_of = i;
    labeled_ones += earlier.label != no_label ? 1 : 0;
    held_ones += earlier.held_out;
    if (earlier.label == label) (earlier.held_out != 0 ? held_of_class : trained_of_class) += 1;
  }
  const bool is_copy = record.copy_of != count_;
  // Classes that come in turns would be held out whole if only the position counted.
  const bool is_due = held_ones < labeled_ones / held_out_every;
  const bool has_others = trained_of_class > held_of_class * (held_out_every - 1);
  const bool chosen = role == Role::automatic && labeled && is_due && has_others;
  record.held_out = role == Role::hold_out || (chosen && held_out_ < most_held_out_) ? 1 : 0;
  if (is_copy) record.held_out = records_[record.copy_of].held_out;
  const bool counts = record.held_out != 0 && !is_copy;
  if (counts && held_out_ == most_held_out_) return {Code::learner_full};
  if (frames_.write != nullptr && !frames_.write(frames_.context, count_, frame)) return {Code::frame_store};
  records_[count_++] = record;
  held_out_ += counts ? 1 : 0;
  return {};
}

size_t LearnerSamples::stage_bytes() const { return of_sensor_ ? static_cast<size_t>(stage_memory(*model_).bytes) : 0; }

Status LearnerSamples::read(int32_t sample, int8_t* input, uint8_t* memory) const {
  if (!of_sensor_) return read_frame(sample, input);
  const StageMemory places = stage_memory(*model_);
  uint8_t* const frame = memory + places.frame;
  PMT_RETURN_IF_ERROR(read_frame(sample, frame));
  run_input_stage(*model_, frame, memory + places.scratch, input);
  return {};
}

Status LearnerSamples::read_frame(int32_t sample, void* frame) const {
  if (!frames_.read(frames_.context, sample, frame)) return {Code::frame_store, sample};
  const uint32_t crc = crc32(static_cast<const uint8_t*>(frame), frame_bytes_);
  return crc == records_[sample].crc32 ? Status{} : Status{Code::frame_store, sample};
}

int32_t LearnerSamples::next(int32_t sample, Use use) const {
  for (; sample < count_; ++sample) {
    const SampleRecord& record = records_[sample];
    if ((record.held_out != 0) != (use == Use::held_out)) continue;
    if ((use == Use::head || use == Use::judgment) && record.label == no_label) continue;
    if (use == Use::head || (use == Use::judgment ? is_first_label(sample) : !is_copy(sample))) return sample;
  }
  return count_;
}

// Labels may come after a frame that had none.
bool LearnerSamples::is_first_label(int32_t sample) const {
  for (int32_t i = records_[sample].copy_of; i < sample; ++i) {
    if (records_[i].copy_of == records_[sample].copy_of && records_[i].label != no_label) return false;
  }
  return true;
}

int32_t LearnerSamples::count(Use use, int32_t* list) const {
  int32_t found = 0;
  for (int32_t i = next(0, use); i < count_; i = next(i + 1, use), ++found) {
    if (list != nullptr) list[found] = i;
  }
  return found;
}

bool LearnerSamples::has_classes() const {
  int32_t last = no_label;
  for (int32_t i = next(0, Use::head); i < count_; i = next(i + 1, Use::head)) {
    const int32_t label = records_[i].label;
    if (last != no_label && label != last) return true;
    last = label;
  }
  return false;
}

}  // namespace pmt
