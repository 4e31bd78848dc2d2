#include "common/block_selection.hpp"

#include "core/train/device_setup.hpp"
#include "core/zo/loss_units.hpp"

namespace pmt::firmware {

bool BlockSelection::open(Session& session, const ModelImage& image, const board::Memory& arena,
                          const SelectionTask& task) {
  task_ = &task;
  session_ = &session;
  arena_ = arena;
  if (!session.open_card(image)) return false;
  Line line;
  line.text("select: ")
      .number(task.count)
      .text(" candidates, ")
      .number(session.card().header().steps)
      .text(" steps each, ");
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
  return self.session_->card().sample(self.task_->first_held_out + index, image, label);
}

// The start is in flash; what is trained is the candidate's own copy.
Status BlockSelection::save(void* context, const Layer& layer) {
  const Model& model = static_cast<const BlockSelection*>(context)->session_->model();
  copy_parameters(model, model.op(layer.op), {layer.weights, layer.bias});
  return {};
}

Status BlockSelection::restore(void*, const Layer&) { return {}; }

Status BlockSelection::run(const SelectionTask::Candidate& candidate, CandidateScore* score) {
  const Model& model = session_->model();
  const Card& card = session_->card();
  const TrainerOptions& options = session_->options();
  Arena memory(arena_.data, arena_.bytes);
  LayerStorage* storage = take_storage(memory, candidate.layer_count);
  for (int32_t i = 0; i < candidate.layer_count; ++i) {
    const OpRecord& op = model.op(candidate.layers[i]);
    const LayerStorage own = take_parameters(memory, model, op, options.train_weights != 0);
    if (!memory.fits()) return {Code::arena_too_small};
    storage[i] = own;
  }
  StepReader steps = {&card, 0};
  TrainerSetup trainer = {&model,  &device_kernels(),   &options,          nullptr, 0,
                          nullptr, card.header().batch, watched_executor()};
  trainer.compact = true;
  const StreamedOps none = {};
  trainer.streams = candidate.stream_count > 0 ? candidate.streams : &none;  // null would have them searched
  trainer.stream_count = candidate.stream_count;
  const SelectionSetup setup = {trainer,
                                {this, save, restore},
                                {&steps, begin, {&steps, read_sample}, card.header().batch, card.header().steps},
                                {this, read_held_out},
                                task_->held_out};
  return try_candidate(setup, {candidate.layers, storage, candidate.layer_count}, arena_.data + memory.used(),
                       arena_.bytes - memory.used(), score);
}

bool BlockSelection::try_next() {
  const SelectionTask::Candidate& candidate = task_->candidates[next_];
  CandidateScore score = {};
  const Status status = run(candidate, &score);
  if (!status.ok()) return session_->fail(candidate.name, status);
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
