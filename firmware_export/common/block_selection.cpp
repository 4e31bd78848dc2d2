#include "common/block_selection.hpp"

#include "core/train/device_setup.hpp"
#include "core/zo/loss_units.hpp"

namespace pmt::firmware {

bool BlockSelection::fail(const char* what, const char* why) {
  print_error(storage_.fault(), what, why);
  return false;
}

bool BlockSelection::open(const ModelImage& image, const board::Memory& arena, const SelectionTask& task) {
  task_ = &task;
  arena_ = arena;
  const Status status = open_model(image, &model_);
  if (!status.ok()) return fail("model", message(status.code));
  const Problem problem = card_.open(&storage_, model_);
  if (problem != nullptr) return fail("card", problem);
  if (!card_.options(&options_)) return fail("options", message(Code::sample_unreadable));
  Line line;
  line.text("select: ").number(task.count).text(" candidates, ").number(card_.header().steps).text(" steps each, ");
  line.number(task.held_out).text(" images held out").print();
  return true;
}

Status BlockSelection::begin(void* context, uint32_t step, float* learning_rate) {
  StepReader& reader = *static_cast<StepReader*>(context);
  StepRecord record;
  reader.step = static_cast<int32_t>(step);
  if (!reader.card->step(reader.step, &record)) return {Code::sample_unreadable};
  *learning_rate = record.learning_rate;
  return {};
}

bool BlockSelection::read_held_out(void* context, int32_t index, int8_t* image, int32_t* label) {
  const BlockSelection& self = *static_cast<const BlockSelection*>(context);
  return self.card_.sample(self.task_->first_held_out + index, image, label);
}

// The start is in flash; what is trained is the candidate's own copy.
Status BlockSelection::save(void* context, const Layer& layer) {
  const Model& model = static_cast<const BlockSelection*>(context)->model_;
  const OpRecord& op = model.op(layer.op);
  if (layer.weights != model.weights(op)) {
    __builtin_memcpy(layer.weights, model.weights(op), static_cast<size_t>(layer.weight_count));
  }
  __builtin_memcpy(layer.bias, model.bias(op), sizeof(int32_t) * static_cast<size_t>(layer.channels));
  return {};
}

Status BlockSelection::restore(void*, const Layer&) { return {}; }

Status BlockSelection::run(const SelectionTask::Candidate& candidate, CandidateScore* score) {
  Arena memory(arena_.data, arena_.bytes);
  LayerStorage* storage = take_storage(memory, candidate.layer_count);
  for (int32_t i = 0; i < candidate.layer_count; ++i) {
    const OpRecord& op = model_.op(candidate.layers[i]);
    const LayerStorage own = take_parameters(memory, model_, op, options_.train_weights != 0);
    if (!memory.fits()) return {Code::arena_too_small};
    storage[i] = own;
  }
  StepReader steps = {&card_, 0};
  TrainerSetup trainer = {&model_, &device_kernels(),    &options_,         nullptr, 0,
                          nullptr, card_.header().batch, watched_executor()};
  trainer.compact = true;
  const StreamedOps none = {};
  trainer.streams = candidate.stream_count > 0 ? candidate.streams : &none;  // null would have them searched
  trainer.stream_count = candidate.stream_count;
  const SelectionSetup setup = {trainer,
                                {this, save, restore},
                                {&steps, begin, {&steps, read_sample}, card_.header().batch, card_.header().steps},
                                {this, read_held_out},
                                task_->held_out};
  return try_candidate(setup, {candidate.layers, storage, candidate.layer_count}, arena_.data + memory.used(),
                       arena_.bytes - memory.used(), score);
}

bool BlockSelection::try_next() {
  const SelectionTask::Candidate& candidate = task_->candidates[next_];
  CandidateScore score = {};
  const Status status = run(candidate, &score);
  if (!status.ok()) return fail(candidate.name, message(status.code));
  const bool equal = score.loss_sum == candidate.expected.loss_sum && score.correct == candidate.expected.correct;
  if (!equal) ++differences_;
  if (next_ == 0 || score.loss_sum < least_loss_) {
    least_loss_ = score.loss_sum;
    best_ = next_;
  }
  Line line;
  line.text(candidate.name).text(": loss ");
  line.ratio(score.loss_sum, int64_t{task_->held_out} << loss_fraction_bits, 4).text(", ");
  line.number(score.correct).text(" of ").number(task_->held_out).text(" right");
  line.text(equal ? ", as on the host" : ", not as on the host").print();
  ++next_;
  return true;
}

bool BlockSelection::report() const {
  Line line;
  line.text("select: ").text(task_->candidates[best_].name);
  if (differences_ == 0) {
    line.text(", as on the host").print();
  } else {
    line.text(", ").number(differences_).text(" scores differ from the host's").print();
  }
  return differences_ == 0;
}

}  // namespace pmt::firmware
