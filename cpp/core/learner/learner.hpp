// A device that learns by itself: it predicts, takes samples in, aligns its network to them, solves its head, compares
// the states on held-out samples, and keeps the best one through resets. All in the caller's memory, in slices: between
// two of them it predicts by the state in force. It has no globals and prints nothing.
#pragma once

#include "core/base/linked/estimators.hpp"
#include "core/base/linked/input_search.hpp"
#include "core/base/linked/learning.hpp"
#include "core/base/linked/windows.hpp"
#include "core/learn/state_choice.hpp"
#include "core/learner/channel_phase.hpp"
#include "core/learner/epoch_phase.hpp"
#include "core/learner/head_phase.hpp"
#include "core/learner/input_phase.hpp"

namespace pmt {

// The choice of filters before the network, with alignment behind them; alignment; neither takes labels.
// The head of the aligned model, or of the original where alignment was not kept; the head of the original; epochs of
// perturbed forwards from the candidate on; all of them. The scores of the state in force, and of the candidate.
PMT_WORDS(LearnerPhase, input, align, head, head_alone, epochs, all, evaluate)

struct LearnerSetup {
  const uint8_t* image;  // .pmt, 16-byte aligned
  size_t image_bytes;
  // Of each channel of the layers but the last, one after another; null: no alignment.
  const ChannelStatistics* clean;
  int32_t clean_count;
  // Which weights alignment changes; they stand in memory. Unless none, `clean` also has the windows' floats, behind
  // those of the channels and as WindowAlignment takes them, padded to an even number; `clean_count` counts pairs.
  AlignedWeights weights;
  const Kernels* kernels;  // that do not pack
  FrameStore frames;
  // Whether alignment keeps activations of its samples in slower memory, such as SDRAM: it takes two forwards a sample
  // at most, not one a layer.
  bool keeps_activations;
  void* external;  // null: none
  size_t external_bytes;
  // Whether filters before the network are chosen, too: the model has an input stage, and samples are frames of its
  // sensor, before the stage.
  bool chooses_input;
  int32_t samples;   // at most; 0: it predicts by the image, and learns nothing
  int32_t held_out;  // of them, at most
  // Whether the confirmed state stays in memory beside the one that is learned. Without, nothing is predicted from a
  // second adaptation's begin() to its commit() or roll_back(), and that needs a storage.
  bool keeps_confirmed;
  const StateStorage* storage;  // null: states do not outlive a reset
  // Whether an earlier learner has had the storage's state on trial in force, and nothing was reset since: it is no
  // boot.
  bool trial_goes_on;
  uint32_t (*milliseconds)(void* clock);  // null: no slices by time
  void* clock;
  const StreamedOps* streams;  // see PredictorSetup
  int32_t stream_count;
  EpochSetup epochs;  // no blocks: none
};

// Bytes: of the persistent part, and of each phase beside it, predictions included. The most of a sum is what the
// memory must have.
struct LearnerMemory {
  size_t persistent = 0, predict = 0, input = 0, align = 0, head = 0, epochs = 0;  // 0: the phase is not there
  size_t external = 0;                                                             // where activations are kept

  size_t needed() const {
    const size_t phases[] = {predict, input, align, head, epochs};
    size_t most = 0;
    for (const size_t phase : phases) most = phase > most ? phase : most;
    return persistent + most;
  }
};

struct Prediction {
  int32_t label;
  float margin;         // its logit less the next one's; of one output, whose sign is the label, its distance from 0
  const float* logits;  // one a class; until the next call of the learner
};

// Limits of a slice, 0 for none. A step is a forward of an image, or a few passes over its features.
struct LearnerBudget {
  int32_t steps;
  uint32_t milliseconds;
};

// A state on the held-out samples.
struct LearnerScore {
  int64_t loss_sum;  // fixed-point, see loss_units.hpp
  int32_t correct;
  int32_t count;  // 0: it was not scored
};

// Filters that a learner has chosen, and the alignment behind them on the held-out samples.
struct ChosenFilters {
  FilterChain filters;
  LearnerScore score;
  int64_t labeled_loss;
  int32_t* losses;
};
template <>
inline constexpr size_t size_on_device<ChosenFilters> = 168;

class Learner {
 public:
  Learner();

  // Enough memory for open() to tell the exact need; 0 for a set-up that it refuses.
  static size_t table_bytes(const LearnerSetup& setup);

  // Opens the newest state of the storage that is confirmed or on trial, else the image. `memory` must be 16-byte
  // aligned and, like all that the setup points to, outlive the learner, which stays where it is. Before it has
  // succeeded there are no places for frames (null), and nothing is predicted, observed, begun or committed.
  Status open(const LearnerSetup& setup, void* memory, size_t bytes);
  // After an open() that had table_bytes() of memory.
  const LearnerMemory& need() const { return need_; }
  // Least bytes of a slot of the storage, after the same.
  size_t slot_bytes() const;
#ifdef PMT_COUNTS_MEMORY
  // The same on a device, whose pointers are shorter; with its kernels in the setup.
  const LearnerMemory& device_need() const { return device_need_; }
  const Plan& plan() const { return predictor_.plan(); }
#endif

  // Where the model has an input stage, else null: room for a frame of its sensor, until the next call, and the stage
  // of the state in force that turns it into the network's input at frame().
  uint8_t* sensor_frame();
  Status run_stage();
  // Room for a frame, where an application can put one that it has no other memory for: until the next call.
  int8_t* frame();
  // Predicts by the state in force. The frame is the network's int8 input.
  Status predict(const int8_t* frame, Prediction* prediction);
  // Takes a sample in: the network's input, or, where filters are chosen, the sensor's frame. Label -1: none. Not while
  // a phase runs.
  Status observe(const void* frame, int32_t label, Role role);
  // Forgets all samples.
  Status forget();

  // Starts a phase on the samples that are there. While a state is on trial, evaluation alone. Not where the state in
  // force, with which the others are compared, is overwritten: a learner that keeps no confirmed one beside it must
  // commit() or cancel() what a phase of its second adaptation has found before the next one.
  Status begin(LearnerPhase phase);
  // Goes on with it; `done` after its end. What fails ends the phase as cancel() does.
  Status run(const LearnerBudget& budget, bool* done);
  // Ends a phase, or drops what it has found; the state in force is what it was.
  Status cancel();

  // original: of the state in force when the phase began.
  LearnerScore held_out(LearnerState state) const {
    return words<LearnerState>.holds(state) ? scores_[static_cast<int32_t>(state)] : LearnerScore{};
  }
  // The best state that phases have found; original: none is better than the one in force.
  LearnerState candidate() const { return candidate_; }
  // The block of a trained candidate, else of the state in force; and, where there are several, the score after an
  // epoch of each, whose count is 0 before.
  int32_t block() const { return candidate_ == LearnerState::trained ? learned_.block() : force_->block(); }
  LearnerScore trial(int32_t block) const {
    const bool is_block = block >= 0 && block < setup_.epochs.layers.count;
    return trials_ != nullptr && is_block ? trials_[block] : LearnerScore{};
  }
  LearnerState in_force() const { return in_force_; }
  bool on_trial() const { return on_trial_; }
  // Whether the storage holds a state of another model or other trained layers, which a commit() replaces.
  bool replaces_others() const { return slots_.has_others(); }
  // See StateSlots::has_damaged().
  bool finds_damage() const { return slots_.has_damaged(); }
  // CRC-32 of the parameters in force that are not the image's, where the state is in memory.
  uint32_t checksum() const;
  bool is_running() const { return stage_ != Stage::idle; }
  // Steps since begin().
  int32_t steps() const { return steps_; }

  // Puts the candidate in force, on trial: into the storage first.
  Status commit();
  // Fails where the storage no longer holds the state, which stays on trial, and after a roll_back() that the storage
  // refused, which can only be tried again.
  Status confirm();
  // Puts the confirmed state in force again, in place of one on trial.
  Status roll_back();

  const Model& model() const { return model_; }
  int32_t sample_count() const { return samples_.count(); }
  const LearnerSamples& samples() const { return samples_; }
  // Whether the state in force is in memory, and not overwritten by what is learned.
  bool has_force() const { return !force_is_lost_; }
  // The parameters of the state in force, where it is in memory: one entry an op; null pointers: the image's.
  void fill_in_force(WritableLayer* layers) const { force_->fill(model_, in_force_, layers); }
  // Its filters; null: the image's.
  const FilterChain* filters_in_force() const { return force_->filters(in_force_); }

 private:
  enum class Stage : int32_t { idle, score, input, align, head, epochs };

  Status take_persistent(Arena& arena);
  Status open_memory(void* memory, size_t bytes);
  Status measure_phases();
  HeadPhaseSetup head_setup(LearnerState state) const;
  uint32_t identity() const;
  Status open_state();
  Status load();
  void use(const LearnerParameters* parameters, LearnerState state);
  Status aim_at_head();

  Status check_phase(LearnerPhase phase) const;
  bool can_align() const;
  // Known while compiling where they are not linked.
  bool learns() const { return linked::learning && setup_.samples > 0; }
  bool has_storage() const { return linked::learning && setup_.storage != nullptr; }
  bool has_epochs() const { return linked::estimators != 0 && setup_.epochs.layers.count > 0; }
  bool chooses_block() const { return has_epochs() && setup_.epochs.layers.count > 1; }
  bool aligns_windows() const { return linked::windows && setup_.weights != AlignedWeights::none; }
  bool chooses_input() const { return linked::input_search && setup_.chooses_input; }
  bool has_images() const;
  bool has_images_to_choose() const;
  bool has_labels() const;
  // Else no head is accepted, and, of fewer labeled samples in all, an alignment without a proof.
  bool judges() const { return samples_.held_out() >= fewest_held_out; }
  bool judges(LearnerState state) const;
  void keep_candidate();
  void write_over_learned();
  Status next_stage();
  Status start_score(LearnerState state);
  Status start_align();
  Status start_channels(const FilterChain* filters);
  Status start_head(LearnerState state);
  Status start_epochs(int32_t block);
  Status start_training();
  void forget_trials();
  Status open_epochs(const EpochSetup& setup, int32_t block, size_t at);
  size_t epochs_offset() const;
  Status end_trial();
  Status step();
  Status score_sample(bool* done);
  bool find_sample(int32_t from);
  Status end_score();
  Status end_comparison();
  bool judge_alignment();
  void judge();

  LearnerSetup setup_ = {};
  Model model_;
  LearnerMemory need_, device_need_;
  WritableLayer* overlay_ = nullptr;  // one an op
  LearnerParameters learned_, confirmed_;
  LearnerSamples samples_;
  Predictor predictor_;
  ChannelPhase channels_;
  InputPhase input_;
  HeadPhase head_;
  EpochPhase epochs_;
  StateSlots slots_;
  uint8_t* phase_ = nullptr;  // memory of one phase at a time; activations stand at its start
  size_t phase_bytes_ = 0;
  uint8_t* passes_ = nullptr;  // where predictions have their activations

  int32_t* losses_[3] = {};  // [held out]: of the original, the best state, the one that is scored
  LearnerScore scores_[learner_states] = {};

  const LearnerParameters* used_ = nullptr;  // in the overlay
  LearnerState used_state_ = LearnerState::original;
  LearnerParameters* force_ = &learned_;  // that hold the state in force
  LearnerState in_force_ = LearnerState::original, confirmed_state_ = LearnerState::original;
  LearnerState candidate_ = LearnerState::original;
  bool is_open_ = false;
  bool on_trial_ = false;
  bool force_is_lost_ = false;  // overwritten by what is learned; the storage has it

  Stage stage_ = Stage::idle;
  LearnerState reaching_ = LearnerState::original;  // by the stage
  LearnerState scored_again_ = LearnerState::original;
  LearnerSamples::Use scored_use_ = LearnerSamples::Use::held_out;
  bool judges_alignment_ = false;  // in this phase
  int64_t labeled_loss_ = 0;       // of the state that is scored, on all samples that judge it
  int64_t labeled_loss_of_force_ = 0;
  bool to_do_[learner_states] = {};
  bool chooses_ = false;  // filters, before alignment
  // Filters that are chosen are compared with the image's own, where there is something to judge them by: the alignment
  // behind the chosen ones, behind the own, and, unless the chosen are worse, behind these again.
  enum class Comparison : int32_t { none, of_chosen, of_own, chosen_again } comparison_ = Comparison::none;
  ChosenFilters* chosen_ = nullptr;  // null where none are chosen
  LearnerScore* trials_ = nullptr;   // one a block; null where none is chosen
  bool is_trial_ = false;            // of a block
  bool has_channels_ = false;        // learned_ holds an alignment that is not worse
  int32_t sample_ = 0, steps_ = 0;
};

}  // namespace pmt
