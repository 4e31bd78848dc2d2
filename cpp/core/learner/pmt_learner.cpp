#include "core/learner/pmt_learner.h"

#include "core/learner/learner.hpp"

namespace {

using namespace pmt;

int code_of(const Status& status) { return static_cast<int>(status.code); }

pmt_score score_of(const LearnerScore& score) { return {score.loss_sum, score.correct, score.count}; }

// All but the storage. One copy: compilers put it into each of its callers, which costs flash.
__attribute__((noinline)) LearnerSetup core_setup(const pmt_learner_setup& setup) {
  LearnerSetup core = {};
  core.image = setup.image;
  core.image_bytes = setup.image_bytes;
  core.clean = reinterpret_cast<const ChannelStatistics*>(setup.clean);
  core.clean_count = setup.clean_count;
  core.weights = static_cast<AlignedWeights>(setup.weights);
  core.kernels = &device_kernels();
  core.frames = {setup.frames.context, setup.frames.read, setup.frames.write};
  core.chooses_input = setup.chooses_input;
  core.samples = setup.samples;
  core.held_out = setup.held_out;
  core.keeps_confirmed = setup.keeps_confirmed;
  core.milliseconds = setup.milliseconds;
  core.clock = setup.clock;
  if (setup.epochs != nullptr) core.epochs = *reinterpret_cast<const EpochSetup*>(setup.epochs);
  core.keeps_activations = setup.keeps_activations;
  core.external = setup.external;
  core.external_bytes = setup.external_bytes;
  return core;
}

static_assert(static_cast<int>(LearnerState::trained) == PMT_TRAINED);
static_assert(static_cast<int>(LearnerPhase::evaluate) == PMT_PHASE_EVALUATE);
static_assert(static_cast<int>(Role::automatic) == PMT_AUTOMATIC);
static_assert(static_cast<int>(AlignedWeights::reliability) == PMT_WEIGHTS_RELIABILITY);
static_assert(sizeof(ChannelStatistics) == 2 * sizeof(float));

}  // namespace

struct pmt_learner {
  // The placement form: it gives back the memory that it is given, and allocates nothing. <new> declares it, but is not
  // there on every board.
  static void* operator new(size_t, void* at) noexcept { return at; }

  Learner learner;
  StateStorage storage = {};
};

static_assert(alignof(pmt_learner) <= 8);

size_t pmt_learner_bytes() { return sizeof(pmt_learner); }

size_t pmt_learner_table_bytes(const pmt_learner_setup* setup) { return Learner::table_bytes(core_setup(*setup)); }

pmt_learner* pmt_learner_open(void* object, const pmt_learner_setup* setup, void* memory, size_t bytes, int* status) {
  const bool is_aligned = reinterpret_cast<uintptr_t>(object) % alignof(pmt_learner) == 0;
  if (object == nullptr || !is_aligned || setup == nullptr || setup->image == nullptr) {
    *status = code_of({Code::learner_object});
    return nullptr;
  }
  auto* self = new (object) pmt_learner();  // NOLINT(cppcoreguidelines-owning-memory)
  LearnerSetup core = core_setup(*setup);
  if (setup->storage != nullptr) {
    const pmt_storage& of = *setup->storage;
    self->storage = {of.context, of.slot_bytes, of.read, of.write, of.erase};
    core.storage = &self->storage;
  }
  *status = code_of(self->learner.open(core, memory, memory == nullptr ? 0 : bytes));
  return self;
}

pmt_need pmt_learner_need(const pmt_learner* learner) {
  if (learner == nullptr) return {};
  const LearnerMemory& need = learner->learner.need();
  return {need.persistent, need.predict,  need.input,
          need.align,      need.head,     need.epochs,
          need.needed(),   need.external, learner->learner.slot_bytes()};
}

bool pmt_learner_replaces_others(const pmt_learner* learner) { return learner->learner.replaces_others(); }

bool pmt_learner_finds_damage(const pmt_learner* learner) { return learner->learner.finds_damage(); }

uint8_t* pmt_learner_sensor_frame(pmt_learner* learner) { return learner->learner.sensor_frame(); }

int pmt_learner_run_stage(pmt_learner* learner) { return code_of(learner->learner.run_stage()); }

int8_t* pmt_learner_frame(pmt_learner* learner) { return learner->learner.frame(); }

int pmt_learner_predict(pmt_learner* learner, const int8_t* frame, pmt_prediction* prediction) {
  Prediction found = {};
  const Status status = learner->learner.predict(frame, &found);
  *prediction = {found.label, found.margin, found.logits};
  return code_of(status);
}

int pmt_learner_observe(pmt_learner* learner, const void* frame, int32_t label, pmt_role role) {
  return code_of(learner->learner.observe(frame, label, static_cast<Role>(role)));
}

int pmt_learner_forget(pmt_learner* learner) { return code_of(learner->learner.forget()); }

int pmt_learner_begin(pmt_learner* learner, pmt_phase phase) {
  return code_of(learner->learner.begin(static_cast<LearnerPhase>(phase)));
}

int pmt_learner_run(pmt_learner* learner, int32_t steps, uint32_t milliseconds, bool* done) {
  *done = false;
  return code_of(learner->learner.run({steps, milliseconds}, done));
}

int pmt_learner_cancel(pmt_learner* learner) { return code_of(learner->learner.cancel()); }

pmt_score pmt_learner_held_out(const pmt_learner* learner, pmt_state state) {
  return score_of(learner->learner.held_out(static_cast<LearnerState>(state)));
}

pmt_state pmt_learner_candidate(const pmt_learner* learner) {
  return static_cast<pmt_state>(learner->learner.candidate());
}

int32_t pmt_learner_block(const pmt_learner* learner) { return learner->learner.block(); }

pmt_score pmt_learner_trial(const pmt_learner* learner, int32_t block) {
  return score_of(learner->learner.trial(block));
}

pmt_state pmt_learner_in_force(const pmt_learner* learner) {
  return static_cast<pmt_state>(learner->learner.in_force());
}

bool pmt_learner_on_trial(const pmt_learner* learner) { return learner->learner.on_trial(); }

int pmt_learner_commit(pmt_learner* learner) { return code_of(learner->learner.commit()); }

int pmt_learner_confirm(pmt_learner* learner) { return code_of(learner->learner.confirm()); }

int pmt_learner_roll_back(pmt_learner* learner) { return code_of(learner->learner.roll_back()); }

const char* pmt_message(int status) { return message(static_cast<Code>(status)); }
