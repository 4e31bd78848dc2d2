#include "core/learner/learner.hpp"

#include "core/base/crc32.hpp"
#include "core/zo/loss.hpp"
#include "core/zo/loss_units.hpp"

namespace pmt {
namespace {

enum Losses : int32_t { of_force, of_best, of_state };

size_t larger_size(size_t a, size_t b) { return a < b ? b : a; }

size_t index_of(LearnerState state) { return static_cast<size_t>(state); }

int32_t channel_count(const Model& model) {
  int32_t count = 0;
  for (int32_t i = 0; i < model.op_count(); ++i) {
    if (is_aligned_op(model, i)) count += model.output_of(model.op(i)).channels;
  }
  return count;
}

// Pairs of floats.
int32_t window_pairs(const Model& model) {
  int32_t floats = 0;
  for (int32_t i = 0; i < model.op_count(); ++i) {
    if (is_window_op(model, i)) floats += WindowAlignment::clean_floats(model, i);
  }
  return (floats + 1) / 2;
}

int32_t label_of(const Model& model, const float* logits) {
  if (is_binary(model)) return logits[0] > 0.0f ? 1 : 0;
  return arg_max(logits, model.classes());
}

}  // namespace

// One copy, and a cold one, for size: compilers write its many zeros one by one else.
__attribute__((cold)) Learner::Learner() = default;

size_t Learner::table_bytes(const LearnerSetup& setup) {
  Learner learner;
  learner.setup_ = setup;
  const bool takes = setup.samples >= 0 && setup.held_out >= 0;
  if (!takes || !learner.model_.open(setup.image, setup.image_bytes).ok()) return 0;
  if (!setup.epochs.layers.are_layers_of(learner.model_)) return 0;
  Arena measure;
  (void)learner.take_persistent(measure);
  return measure.used() + (learner.has_epochs() ? EpochPhase::table_bytes(learner.model_, setup.epochs) : 0);
}

bool Learner::can_align() const {
  const int32_t count = channel_count(model_) + (aligns_windows() ? window_pairs(model_) : 0);
  return setup_.clean != nullptr && setup_.clean_count > 0 && setup_.clean_count == count;
}

Status Learner::open(const LearnerSetup& setup, void* memory, size_t bytes) {
  setup_ = setup;
  is_open_ = false;
  trials_ = nullptr;
  need_ = device_need_ = {};
  steps_ = 0;
  in_force_ = confirmed_state_ = LearnerState::original;
  on_trial_ = force_is_lost_ = false;
  PMT_RETURN_IF_ERROR(cancel());
  if (reinterpret_cast<uintptr_t>(memory) % image_alignment != 0) return {Code::arena_alignment};
  PMT_RETURN_IF_ERROR(model_.open(setup.image, setup.image_bytes));
  if (!setup.epochs.layers.are_layers_of(model_)) return {Code::layer_not_trainable};
  if (setup.samples < 0 || setup.held_out < 0 || setup.held_out > setup.samples) return {Code::option_value};
  if (setup.held_out > PairedLosses::most_samples) return {Code::option_value};
  const bool are_linked = setup.weights == AlignedWeights::none ||
                          (linked::windows && (linked::reliability || setup.weights == AlignedWeights::windows));
  if (!words<AlignedWeights>.holds(setup.weights) || !are_linked) return {Code::option_value};
  if (setup.samples == 0 ? setup.storage != nullptr : setup.frames.read == nullptr) return {Code::option_value};
  if (setup.storage != nullptr && !setup.storage->has_functions()) return {Code::option_value};
  const bool needs_clean = setup.clean != nullptr || setup.chooses_input;
  if (needs_clean && !can_align()) return {Code::learner_statistics};
  if (setup.chooses_input && (model_.stage() == nullptr || is_binary(model_))) return {Code::learner_input};
  samples_.open(setup.frames, model_, setup.chooses_input, setup.held_out);
  PMT_RETURN_IF_ERROR(open_memory(memory, bytes));
  PMT_RETURN_IF_ERROR(open_state());
  is_open_ = true;
  return {};
}

size_t Learner::slot_bytes() const {
  return StateSlots::bytes_needed(LearnerParameters::largest(model_, setup_.epochs.layers, setup_.weights));
}

Status Learner::take_persistent(Arena& arena) {
  if (learns()) {
    overlay_ = arena.take<WritableLayer>(MemoryPart::lists, model_.op_count());
    learned_.take(model_, 2, setup_.epochs.layers, setup_.weights, arena);
    if (setup_.keeps_confirmed) confirmed_.take(model_, 1, setup_.epochs.layers, setup_.weights, arena);
    samples_.take(setup_.samples, arena);
    for (int32_t*& losses : losses_) losses = arena.take<int32_t>(MemoryPart::tables, setup_.held_out);
  }
  trials_ = nullptr;
  if (chooses_block()) trials_ = arena.take<LearnerScore>(MemoryPart::lists, setup_.epochs.layers.count);
  forget_trials();
  if (chooses_input()) {
    chosen_ = arena.take<ChosenFilters>(MemoryPart::lists, 1);
    auto* const losses = arena.take<int32_t>(MemoryPart::tables, setup_.held_out);
    if (arena.fits()) chosen_->losses = losses;
  }
  return predictor_.open({&model_, setup_.kernels, setup_.streams, setup_.stream_count}, arena);
}

// The persistent part, then the need of the phases, which share what is left.
Status Learner::open_memory(void* memory, size_t bytes) {
  Arena arena(memory, bytes);
  PMT_RETURN_IF_ERROR(take_persistent(arena));
  need_.persistent = arena.used();
  device_need_.persistent = device_bytes(arena);
  need_.predict = device_need_.predict = predictor_.whole_bytes();
  phase_ = static_cast<uint8_t*>(memory) + need_.persistent;
  phase_bytes_ = bytes - need_.persistent;
  PMT_RETURN_IF_ERROR(measure_phases());
  const size_t external = setup_.external == nullptr ? 0 : setup_.external_bytes;
  if (bytes < need_.needed() || external < need_.external) return {Code::arena_too_small};
  passes_ = phase_;
  return aim_at_head();
}

// A phase's activations stand at the start of its memory. Planning takes none of it.
Status Learner::measure_phases() {
  if (!learns()) return {};
  if (has_linear_head(model_)) {
    head_.open(head_setup(LearnerState::head), nullptr, 0);
    need_.head = need_.predict + head_.bytes_needed();
    device_need_.head = need_.predict + head_.bytes_on_device();
  }
  if (has_epochs()) {
    for (int32_t i = setup_.epochs.layers.count - 1; i >= 0; --i) {  // the first block stays
      learned_.set_base(model_, LearnerState::original, i);
      const Status status = open_epochs(setup_.epochs, i, 0);
      if (!status.ok() && status.code != Code::arena_too_small) return status;
      need_.epochs = larger_size(need_.epochs, epochs_offset() + epochs_.bytes_needed());
      device_need_.epochs = larger_size(device_need_.epochs, epochs_offset() + epochs_.bytes_on_device());
    }
  }
  if (!can_align()) return {};
  auto* const kept = static_cast<int8_t*>(setup_.external);
  const bool keeps = setup_.keeps_activations;
  const ChannelStatistics* const behind = setup_.clean + channel_count(model_);
  const float* const windows = aligns_windows() ? reinterpret_cast<const float*>(behind) : nullptr;
  const Status status = channels_.open({&predictor_, setup_.clean, windows, setup_.weights, &samples_, keeps, kept},
                                       phase_, phase_bytes_);
  if (!status.ok() && status.code != Code::arena_too_small) return status;
  Arena external;
  external.take<int8_t>(channels_.external_bytes());
  need_.external = device_need_.external = external.used();
  need_.align = device_need_.align = larger_size(channels_.bytes_needed(), need_.predict);
  if (chooses_input()) {
    (void)input_.open({&predictor_, &channels_, &samples_, &learned_}, phase_, phase_bytes_);
    need_.input = device_need_.input = larger_size(input_.bytes_needed(), need_.predict);
  }
  return predictor_.stop_at(predictor_.last());
}

HeadPhaseSetup Learner::head_setup(LearnerState state) const { return {&predictor_, &samples_, learned_.head(state)}; }

// The trained layers and aligned weights decide the size of a slot, and so where the second one begins.
uint32_t Learner::identity() const {
  uint32_t crc = aligns_windows() ? ~model_.header().crc32 : model_.header().crc32;
  if (setup_.weights == AlignedWeights::reliability) crc = crc32(reinterpret_cast<const uint8_t*>(&crc), sizeof crc);
  for (int32_t i = 0; i < setup_.epochs.layers.count; ++i) {
    const TrainedLayers& layers = setup_.epochs.layers.blocks[i];
    const auto* ops = reinterpret_cast<const uint8_t*>(layers.ops);
    // Inverted between blocks, which could be cut otherwise.
    crc = crc32(ops, sizeof(int32_t) * static_cast<size_t>(layers.count), i == 0 ? crc : ~crc);
  }
  return crc;
}

Status Learner::open_state() {
  force_ = setup_.keeps_confirmed ? &confirmed_ : &learned_;
  if (!has_storage()) return {};
  if (setup_.storage->slot_bytes < slot_bytes()) return {Code::state_size};
  slots_.open(*setup_.storage, identity());
  PMT_RETURN_IF_ERROR(slots_.boot(!setup_.trial_goes_on));
  PMT_RETURN_IF_ERROR(load());
  on_trial_ = slots_.on_trial();
  return {};
}

// Puts the storage's state in force.
Status Learner::load() {
  LearnerParameters& to = setup_.keeps_confirmed ? confirmed_ : learned_;
  in_force_ = LearnerState::original;
  force_ = &to;
  force_is_lost_ = false;
  used_ = nullptr;
  if (!slots_.has_state()) return {};
  const auto state = static_cast<LearnerState>(slots_.tag() & 0xFFu),
             base = static_cast<LearnerState>(slots_.tag() >> 8 & 0xFFu);
  const auto block = static_cast<int32_t>(slots_.tag() >> 16), blocks = setup_.epochs.layers.count;
  const bool is_known = words<LearnerState>.holds(state) && words<LearnerState>.holds(base);
  if (!is_known || state == LearnerState::original || base == LearnerState::trained) return {Code::state_storage};
  if (state == LearnerState::trained ? block >= blocks : block != 0) return {Code::state_storage};
  to.set_base(model_, base, block);
  PMT_RETURN_IF_ERROR(slots_.load(StoredParameters{to, model_, state}.parts()));
  if (!to.is_sound(model_, state)) return {Code::state_storage};
  if (!setup_.chooses_input && to.has_other_filters(model_, state)) return {Code::learner_filters};
  in_force_ = state;
  return {};
}

void Learner::use(const LearnerParameters* parameters, LearnerState state) {
  if (!learns() || (used_ == parameters && used_state_ == state)) return;
  parameters->fill(model_, state, overlay_);
  model_.overlay(overlay_, parameters->filters(state));
  predictor_.bind();
  used_ = parameters;
  used_state_ = state;
}

Status Learner::open_epochs(const EpochSetup& setup, int32_t block, size_t at) {
  return epochs_.open(setup, block, model_, *setup_.kernels, samples_, learned_.trained(), phase_ + at,
                      phase_bytes_ - at);
}

// Where they begin that are open: predictions run in the trainer's activations where there is room, else before it.
size_t Learner::epochs_offset() const { return epochs_.activation_bytes() < need_.predict ? need_.predict : 0; }

// A pass of the whole network; a phase may have planned others since the last one.
Status Learner::aim_at_head() {
  PMT_RETURN_IF_ERROR(predictor_.stop_at(predictor_.last()));
  predictor_.place(passes_);
  return {};
}

int8_t* Learner::frame() {
  if (!is_open_) return nullptr;
  (void)aim_at_head();  // it was planned before
  return predictor_.input();
}

uint8_t* Learner::sensor_frame() {
  if (!is_open_ || model_.stage() == nullptr) return nullptr;
  (void)aim_at_head();
  return predictor_.sensor_frame();
}

Status Learner::run_stage() {
  if (!is_open_) return {Code::learner_open};
  if (model_.stage() == nullptr || (setup_.chooses_input && force_is_lost_)) return {Code::learner_call};
  if (setup_.chooses_input) use(force_, in_force_);  // else all states have the image's filters
  PMT_RETURN_IF_ERROR(aim_at_head());
  predictor_.run_stage();
  return {};
}

Status Learner::predict(const int8_t* frame, Prediction* prediction) {
  if (!is_open_) return {Code::learner_open};
  if (force_is_lost_) return {Code::learner_call};
  use(force_, in_force_);
  PMT_RETURN_IF_ERROR(aim_at_head());
  if (frame != predictor_.input()) {
    __builtin_memcpy(predictor_.input(), frame, static_cast<size_t>(element_count(model_.input())));
  }
  predictor_.run();
  const float* logits = predictor_.logits();
  const int32_t classes = model_.classes(), label = label_of(model_, logits);
  if (is_binary(model_)) {
    *prediction = {label, __builtin_fabsf(logits[0]), logits};
    return {};
  }
  float next = 0.0f;
  bool found = false;
  for (int32_t c = 0; c < classes; ++c) {
    if (c == label || (found && !(logits[c] > next))) continue;
    next = logits[c];
    found = true;
  }
  *prediction = {label, found ? logits[label] - next : 0.0f, logits};
  return {};
}

Status Learner::observe(const void* frame, int32_t label, Role role) {
  if (!is_open_) return {Code::learner_open};
  if (!learns()) return {Code::learner_full};
  if (is_running()) return {Code::learner_call};
  if (label < no_label || label >= label_count(model_)) return {Code::label_range};
  if (!words<Role>.holds(role)) return {Code::option_value};
  return samples_.add(frame, label, role);
}

Status Learner::forget() {
  if (is_running()) return {Code::learner_call};
  samples_.clear();
  return cancel();
}

Status Learner::check_phase(LearnerPhase phase) const {
  const bool evaluates = phase == LearnerPhase::evaluate;
  if (is_running() || force_is_lost_ || (on_trial_ && !evaluates)) return {Code::learner_call};
  if (!words<LearnerPhase>.holds(phase)) return {Code::option_value};
  if (evaluates) return judges() ? Status{} : Status{Code::learner_samples};
  const bool force_is_learned = in_force_ != LearnerState::original && force_ == &learned_;
  if (force_is_learned && setup_.storage == nullptr) return {Code::learner_call};
  const bool aligns = phase == LearnerPhase::align || phase == LearnerPhase::input,
             solves = !aligns && phase != LearnerPhase::all;
  if (phase == LearnerPhase::input && !chooses_input()) return {Code::learner_input};
  if (phase == LearnerPhase::input && !has_images_to_choose()) return {Code::learner_samples};
  if (aligns && !can_align()) return {Code::learner_statistics};
  if (solves && phase != LearnerPhase::epochs && !has_linear_head(model_)) return {Code::learner_head};
  if (phase == LearnerPhase::epochs && !has_epochs()) return {Code::learner_epochs};
  const bool by_images = aligns || (!solves && can_align());
  const bool enough = (by_images && has_images()) || (!aligns && has_labels());
  return enough ? Status{} : Status{Code::learner_samples};
}

bool Learner::has_images() const {
  return samples_.count(LearnerSamples::Use::alignment) >= ChannelPhase::fewest_samples;
}

bool Learner::has_images_to_choose() const {
  return samples_.count(LearnerSamples::Use::alignment) >= InputPhase::fewest_samples;
}

bool Learner::judges(LearnerState state) const {
  if (state != LearnerState::aligned) return judges();
  return samples_.held_out() + samples_.count(LearnerSamples::Use::judgment) >= fewest_held_out;
}

bool Learner::has_labels() const { return judges() && samples_.has_classes(); }

Status Learner::begin(LearnerPhase phase) {
  if (!is_open_) return {Code::learner_open};
  if (!learns()) return {Code::learner_samples};
  PMT_RETURN_IF_ERROR(check_phase(phase));
  const bool all = phase == LearnerPhase::all, few_labels = !has_labels();
  const bool aligns =
      phase == LearnerPhase::align || phase == LearnerPhase::input || (all && can_align() && has_images());
  chooses_ = phase == LearnerPhase::input || (all && aligns && chooses_input() && has_images_to_choose());
  const bool on_aligned = all ? aligns : phase == LearnerPhase::head && has_channels_;
  for (bool& state : to_do_) state = false;
  to_do_[index_of(LearnerState::aligned)] = aligns;
  to_do_[index_of(LearnerState::original)] = judges(aligns ? LearnerState::aligned : LearnerState::head);
  to_do_[index_of(LearnerState::trained)] = !few_labels && has_epochs() && (all || phase == LearnerPhase::epochs);
  const bool heads = all || phase == LearnerPhase::head || phase == LearnerPhase::head_alone;
  if (heads && !few_labels && has_linear_head(model_)) {
    to_do_[index_of(LearnerState::head)] = on_aligned;
    to_do_[index_of(LearnerState::head_alone)] = all || !on_aligned;
  }
  keep_candidate();
  judges_alignment_ = aligns || scored_again_ == LearnerState::aligned;
  for (LearnerScore& score : scores_) score = {};
  steps_ = 0;
  const Status status = next_stage();
  if (!status.ok()) (void)cancel();
  return status;
}

// What an earlier phase has found stays a candidate where this one does not write over it. It is scored again, for the
// samples may be others.
void Learner::keep_candidate() {
  LearnerState kept = candidate_;
  // The original is scored, and not written over.
  const auto lost = [&](LearnerState state) { return state != LearnerState::original && to_do_[index_of(state)]; };
  if (kept == LearnerState::trained && (lost(kept) || lost(learned_.base()))) kept = learned_.base();
  if (kept == LearnerState::head && lost(kept)) kept = LearnerState::aligned;
  if (kept == LearnerState::head_alone && lost(kept)) kept = LearnerState::original;
  if (learned_.is_aligned(kept) && lost(LearnerState::aligned)) kept = LearnerState::original;
  candidate_ = judges() ? LearnerState::original : kept;
  scored_again_ = judges() ? kept : LearnerState::original;
}

Status Learner::next_stage() {
  stage_ = Stage::idle;
  passes_ = phase_;
  const auto takes = [this](LearnerState state) {
    const bool due = to_do_[index_of(state)];
    to_do_[index_of(state)] = false;
    return due;
  };
  if (takes(LearnerState::original)) return start_score(LearnerState::original);
  if (scored_again_ != LearnerState::original) {
    const LearnerState state = scored_again_;
    scored_again_ = LearnerState::original;
    return start_score(state);
  }
  if (takes(LearnerState::aligned)) return start_align();
  if (takes(LearnerState::head)) return start_head(LearnerState::head);
  if (takes(LearnerState::head_alone)) return start_head(LearnerState::head_alone);
  if (takes(LearnerState::trained) && has_epochs()) return start_training();
  return {};
}

Status Learner::start_score(LearnerState state) {
  stage_ = Stage::score;
  reaching_ = state;
  scored_use_ = LearnerSamples::Use::held_out;
  (void)find_sample(0);
  scores_[index_of(state)] = {};
  labeled_loss_ = 0;
  return {};
}

// What is learned begins with the image.
void Learner::write_over_learned() {
  if (in_force_ != LearnerState::original && force_ == &learned_) force_is_lost_ = true;
  model_.overlay(nullptr);
  used_ = nullptr;
}

Status Learner::start_align() {
  reaching_ = LearnerState::aligned;
  write_over_learned();
  if (!chooses_ || !chooses_input()) return start_channels(nullptr);
  stage_ = Stage::input;
  has_channels_ = false;
  learned_.reset_channels(model_);
  use(&learned_, LearnerState::aligned);
  input_.start();
  return {};
}

// Null: behind the image's own filters.
Status Learner::start_channels(const FilterChain* filters) {
  stage_ = Stage::align;
  has_channels_ = false;
  learned_.reset_channels(model_.original());
  if (filters != nullptr) learned_.set_filters(*filters);
  use(&learned_, LearnerState::aligned);
  channels_.start(learned_, samples_.count(LearnerSamples::Use::alignment));
  return {};
}

Status Learner::start_head(LearnerState state) {
  stage_ = Stage::head;
  reaching_ = state;
  write_over_learned();
  learned_.reset_head(model_, state);
  return head_.open(head_setup(state), phase_ + need_.predict, phase_bytes_ - need_.predict);
}

void Learner::forget_trials() {
  for (int32_t i = 0; trials_ != nullptr && i < setup_.epochs.layers.count; ++i) trials_[i] = {};
}

Status Learner::start_training() {
  is_trial_ = chooses_block();
  forget_trials();
  return start_epochs(0);
}

// From the best state so far.
Status Learner::start_epochs(int32_t block) {
  stage_ = Stage::epochs;
  reaching_ = LearnerState::trained;
  write_over_learned();
  use(&learned_, candidate_);
  learned_.reset_trained(model_, candidate_, block);
  EpochSetup setup = setup_.epochs;
  if (is_trial_) setup.epochs = 1;
  PMT_RETURN_IF_ERROR(open_epochs(setup, block, 0));
  if (epochs_offset() > 0) return open_epochs(setup, block, epochs_offset());
  passes_ = epochs_.activations();
  return {};
}

Status Learner::run(const LearnerBudget& budget, bool* done) {
  if (budget.milliseconds > 0 && setup_.milliseconds == nullptr) return {Code::learner_clock};
  const uint32_t begun = budget.milliseconds > 0 ? setup_.milliseconds(setup_.clock) : 0;
  for (int32_t i = 0; learns() && is_running() && (budget.steps == 0 || i < budget.steps); ++i) {
    const Status status = step();
    if (!status.ok()) {
      (void)cancel();
      return status;
    }
    if (budget.milliseconds > 0 && setup_.milliseconds(setup_.clock) - begun >= budget.milliseconds) break;
  }
  *done = !is_running();
  return {};
}

Status Learner::step() {
  ++steps_;
  bool done = false;
  if (stage_ == Stage::score) {
    PMT_RETURN_IF_ERROR(score_sample(&done));
    return done ? end_score() : Status{};
  }
  if (stage_ == Stage::align || stage_ == Stage::input) {
    use(&learned_, LearnerState::aligned);
    PMT_RETURN_IF_ERROR(stage_ == Stage::input && chooses_input() ? input_.step(&done) : channels_.step(&done));
    has_channels_ = done;
    const bool chose = done && stage_ == Stage::input && judges();
    if (chose && learned_.has_other_filters(model_, reaching_)) comparison_ = Comparison::of_chosen;
  } else if (stage_ == Stage::epochs && has_epochs()) {
    use(&learned_, learned_.base());
    PMT_RETURN_IF_ERROR(epochs_.step(&done));
  } else {
    use(&learned_, reaching_ == LearnerState::head ? LearnerState::aligned : LearnerState::original);
    PMT_RETURN_IF_ERROR(aim_at_head());
    PMT_RETURN_IF_ERROR(head_.step(&done));
  }
  if (!done) return {};
  passes_ = phase_;
  if (chooses_input() && comparison_ == Comparison::chosen_again) {
    comparison_ = Comparison::none;
    return next_stage();
  }
  if (judges(reaching_)) return start_score(reaching_);
  candidate_ = reaching_;
  return next_stage();
}

Status Learner::end_score() {
  if (chooses_input() && reaching_ == LearnerState::aligned && comparison_ != Comparison::none) return end_comparison();
  if (chooses_block() && reaching_ == LearnerState::trained && is_trial_) return end_trial();
  judge();
  return next_stage();
}

Status Learner::end_comparison() {
  LearnerScore& score = scores_[index_of(reaching_)];
  const int32_t count = samples_.held_out();
  const auto bytes = static_cast<size_t>(count) * sizeof(int32_t);
  if (comparison_ == Comparison::of_chosen) {
    comparison_ = Comparison::of_own;
    chosen_->filters = *learned_.filters(reaching_);
    chosen_->score = score;
    chosen_->labeled_loss = labeled_loss_;
    __builtin_memcpy(chosen_->losses, losses_[of_state], bytes);
    return start_channels(nullptr);
  }
  // They were chosen beyond doubt, on more samples than these.
  const bool keeps_chosen = !is_worse(chosen_->losses, losses_[of_state], count, 1);
  if (keeps_chosen) {
    score = chosen_->score;
    labeled_loss_ = chosen_->labeled_loss;
    __builtin_memcpy(losses_[of_state], chosen_->losses, bytes);
  }
  judge();
  if (!keeps_chosen || !has_channels_) {
    comparison_ = Comparison::none;
    return next_stage();
  }
  comparison_ = Comparison::chosen_again;
  return start_channels(&chosen_->filters);
}

// As pmt::select_layers() does (section 3.3 of the paper): all blocks see the same samples, from the same start.
Status Learner::end_trial() {
  const int32_t block = learned_.block(), count = setup_.epochs.layers.count;
  trials_[block] = scores_[index_of(LearnerState::trained)];
  if (block + 1 < count) return start_epochs(block + 1);
  int32_t best = 0;
  for (int32_t i = 1; i < count; ++i) best = trials_[i].loss_sum < trials_[best].loss_sum ? i : best;
  is_trial_ = false;
  return start_epochs(best);
}

Status Learner::score_sample(bool* done) {
  const bool is_force = reaching_ == LearnerState::original;
  use(is_force ? force_ : &learned_, is_force ? in_force_ : reaching_);
  PMT_RETURN_IF_ERROR(aim_at_head());
  PMT_RETURN_IF_ERROR(samples_.read(sample_, predictor_.input()));
  predictor_.run();
  const float* logits = predictor_.logits();
  const int32_t label = samples_[sample_].label;
  const auto target = static_cast<float>(label);
  const int32_t loss = is_binary(model_) ? binary_cross_entropy(logits, 1, {label, &target})
                                         : cross_entropy(logits, model_.classes(), label);
  labeled_loss_ += loss;
  if (scored_use_ == LearnerSamples::Use::held_out) {
    LearnerScore& score = scores_[index_of(reaching_)];
    losses_[is_force ? of_force : of_state][score.count++] = loss;
    score.loss_sum += loss;
    score.correct += label_of(model_, logits) == label ? 1 : 0;
  }
  *done = !find_sample(sample_ + 1);
  return {};
}

// The next one to score, if there is one: held out, then, where alignment is judged, trained on.
bool Learner::find_sample(int32_t from) {
  sample_ = samples_.next(from, scored_use_);
  const bool is_judged = reaching_ == LearnerState::original || reaching_ == LearnerState::aligned;
  if (sample_ == samples_.count() && scored_use_ == LearnerSamples::Use::held_out && judges_alignment_ && is_judged) {
    scored_use_ = LearnerSamples::Use::judgment;
    sample_ = samples_.next(0, scored_use_);
  }
  return sample_ < samples_.count();
}

// Without a margin, and by the samples trained on, too: it takes no labels, and shrinkage has left alone what chance
// explains. Whether it is better than all other states.
bool Learner::judge_alignment() {
  const bool is_better = labeled_loss_ < labeled_loss_of_force_;
  // A state that was learned before may be better than the alignment alone, and not than the head behind it.
  if (!is_better && in_force_ == LearnerState::original) {
    bool& head = to_do_[index_of(LearnerState::head)];
    to_do_[index_of(LearnerState::head_alone)] |= head;
    has_channels_ = head = false;
  }
  const LearnerScore &best = scores_[index_of(candidate_)], &aligned = scores_[index_of(LearnerState::aligned)];
  return is_better && (candidate_ == LearnerState::original || aligned.loss_sum < best.loss_sum);
}

void Learner::judge() {
  const int32_t count = samples_.held_out();
  const auto bytes = static_cast<size_t>(count) * sizeof(int32_t);
  if (reaching_ == LearnerState::original) {
    __builtin_memcpy(losses_[of_best], losses_[of_force], bytes);
    labeled_loss_of_force_ = labeled_loss_;
    return;
  }
  const auto correct = [this](LearnerState state) { return scores_[index_of(state)].correct; };
  const ScoredState force = {losses_[of_force], correct(LearnerState::original)};
  const ScoredState best = {losses_[of_best], correct(candidate_)}, state = {losses_[of_state], correct(reaching_)};
  const bool is_few = reaching_ == LearnerState::trained && count < few_held_out;
  const int32_t errors = is_few ? few_state_errors : state_errors;
  const bool is_kept = reaching_ == LearnerState::aligned
                           ? judge_alignment()
                           : is_better(force, best, state, count, errors, reaching_ == LearnerState::head_alone);
  if (!is_kept) return;
  candidate_ = reaching_;
  __builtin_memcpy(losses_[of_best], losses_[of_state], bytes);
}

uint32_t Learner::checksum() const {
  uint32_t crc = 0;
  for (int32_t i = 0;; ++i) {
    const StatePart part = force_->part(model_, in_force_, i);
    if (part.bytes == nullptr) return crc;
    crc = crc32(part.bytes, part.count, crc);
  }
}

Status Learner::cancel() {
  stage_ = Stage::idle;
  passes_ = phase_;
  candidate_ = LearnerState::original;
  has_channels_ = false;
  comparison_ = Comparison::none;
  is_trial_ = false;
  forget_trials();
  for (LearnerScore& score : scores_) score = {};
  used_ = nullptr;
  return learns() && force_is_lost_ ? load() : Status{};
}

Status Learner::commit() {
  if (is_running() || on_trial_ || candidate_ == LearnerState::original) return {Code::learner_call};
  if (has_storage()) {
    const bool is_trained = candidate_ == LearnerState::trained;
    const auto base = static_cast<uint32_t>(is_trained ? learned_.base() : LearnerState::original);
    const auto block = static_cast<uint32_t>(is_trained ? learned_.block() : 0);
    const uint32_t tag = static_cast<uint32_t>(candidate_) | base << 8 | block << 16;
    PMT_RETURN_IF_ERROR(slots_.write(StoredParameters{learned_, model_, candidate_}.parts(), tag, true));
  }
  force_ = &learned_;
  in_force_ = candidate_;
  candidate_ = LearnerState::original;
  on_trial_ = true;
  force_is_lost_ = false;
  return {};
}

Status Learner::confirm() {
  if (!on_trial_ || is_running()) return {Code::learner_call};
  if (has_storage()) PMT_RETURN_IF_ERROR(slots_.confirm());
  on_trial_ = false;
  confirmed_state_ = in_force_;
  if (!setup_.keeps_confirmed || force_ == &confirmed_) return {};
  confirmed_.set_base(model_, learned_.base(), learned_.block());
  for (int32_t i = 0;; ++i) {
    const StatePart from = learned_.part(model_, in_force_, i), to = confirmed_.part(model_, in_force_, i);
    if (from.bytes == nullptr) break;
    __builtin_memcpy(to.bytes, from.bytes, from.count);
  }
  force_ = &confirmed_;
  used_ = nullptr;
  return {};
}

Status Learner::roll_back() {
  if (!on_trial_ || is_running()) return {Code::learner_call};
  if (has_storage()) PMT_RETURN_IF_ERROR(slots_.roll_back());
  on_trial_ = false;
  has_channels_ = false;
  if (has_storage()) return load();
  force_ = setup_.keeps_confirmed ? &confirmed_ : &learned_;
  in_force_ = confirmed_state_;
  return {};
}

}  // namespace pmt
