/* The learner of learner.hpp from C: the same calls, whose documentation is there. A status is 0, or a code that
   pmt_message() puts into words. */
#ifndef PMT_LEARNER_H
#define PMT_LEARNER_H

/* C: NOLINTBEGIN(modernize-use-using, modernize-deprecated-headers) */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct pmt_learner pmt_learner;
/* Layers and options of epochs of perturbed forwards: the EpochSetup of epoch_phase.hpp, which the model/epochs.hpp of
   an export fills in, and whose address a function in C++ returns as this. */
typedef struct pmt_epochs pmt_epochs;

/* Numbers, for compilers differ in the size of an enumeration. */
typedef int32_t pmt_state;
enum { PMT_ORIGINAL, PMT_ALIGNED, PMT_HEAD, PMT_HEAD_ALONE, PMT_TRAINED };
typedef int32_t pmt_phase;
enum {
  PMT_PHASE_INPUT,
  PMT_PHASE_ALIGN,
  PMT_PHASE_HEAD,
  PMT_PHASE_HEAD_ALONE,
  PMT_PHASE_EPOCHS,
  PMT_PHASE_ALL,
  PMT_PHASE_EVALUATE
};
typedef int32_t pmt_weights;
enum { PMT_WEIGHTS_NONE, PMT_WEIGHTS_WINDOWS, PMT_WEIGHTS_RELIABILITY };
typedef int32_t pmt_role;
enum { PMT_TRAIN, PMT_HOLD_OUT, PMT_AUTOMATIC };

typedef struct {
  void* context;
  bool (*read)(void* context, int32_t index, void* frame);        /* false: it failed */
  bool (*write)(void* context, int32_t index, const void* frame); /* null: others put frames there */
} pmt_frames;

/* Two slots, 0 and 1, of pmt_need.slot bytes or more. Writes are multiples of 32 bytes, at multiples of 32, onto
   bytes that nothing was written to since erase(); or the same bytes again, where a power cut has torn a write. */
typedef struct {
  void* context;
  size_t slot_bytes;
  bool (*read)(void* context, int32_t slot, size_t at, void* to, size_t count); /* false: it failed */
  bool (*write)(void* context, int32_t slot, size_t at, const void* from, size_t count);
  bool (*erase)(void* context, int32_t slot);
} pmt_storage;

typedef struct {
  const uint8_t* image;
  size_t image_bytes;
  const float* clean;  /* mean and deviation of each channel; null: no alignment */
  int32_t clean_count; /* channels, or pairs of floats where windows are aligned */
  pmt_frames frames;
  bool chooses_input;
  int32_t samples, held_out;
  bool keeps_confirmed;
  const pmt_storage* storage;            /* may be null */
  uint32_t (*milliseconds)(void* clock); /* may be null */
  void* clock;
  const pmt_epochs* epochs; /* may be null */
  bool keeps_activations;
  void* external; /* may be null */
  size_t external_bytes;
  pmt_weights weights; /* that alignment changes; what `clean` then has: see LearnerSetup */
} pmt_learner_setup;

typedef struct {
  int32_t label; /* of one output: whether it is above 0 */
  float margin;
  const float* logits;
} pmt_prediction;

typedef struct {
  int64_t loss_sum; /* nats times 2^20 */
  int32_t correct, count;
} pmt_score;

/* Bytes: of the persistent part, and beside it of predictions and of each phase, 0 where it is not there; of `memory`,
   which is the former and the largest of the latter; of `external`; and of a slot of the storage. */
typedef struct {
  size_t persistent, predict, input, align, head, epochs;
  size_t memory, external, slot;
} pmt_need;

/* A learner stands in memory of the application, of this size, aligned to 8 bytes. */
size_t pmt_learner_bytes(void);
/* `memory` is 16-byte aligned; null counts as 0 bytes. Returns the learner, which is where `object` is, and its status;
   null where `object`, `setup` or its image is null, or `object` is not aligned. The other calls take no such null. */
pmt_learner* pmt_learner_open(void* object, const pmt_learner_setup* setup, void* memory, size_t bytes, int* status);
/* Bytes with which open() knows what the memory must have, also where it says that it is too small. */
size_t pmt_learner_table_bytes(const pmt_learner_setup* setup);
/* Zeros for a learner that is null. */
pmt_need pmt_learner_need(const pmt_learner* learner);
/* After open(): whether the storage holds a state of another model or other trained layers, which a commit() replaces;
   and whether it holds one that is damaged or could not be read, so that an older one, or the image, is in force. */
bool pmt_learner_replaces_others(const pmt_learner* learner);
bool pmt_learner_finds_damage(const pmt_learner* learner);

/* Null before open() has succeeded; and, of the sensor, where the model has no input stage. */
uint8_t* pmt_learner_sensor_frame(pmt_learner* learner);
int pmt_learner_run_stage(pmt_learner* learner);
int8_t* pmt_learner_frame(pmt_learner* learner);
int pmt_learner_predict(pmt_learner* learner, const int8_t* frame, pmt_prediction* prediction);
int pmt_learner_observe(pmt_learner* learner, const void* frame, int32_t label, pmt_role role);
int pmt_learner_forget(pmt_learner* learner);
int pmt_learner_begin(pmt_learner* learner, pmt_phase phase);
int pmt_learner_run(pmt_learner* learner, int32_t steps, uint32_t milliseconds, bool* done);
int pmt_learner_cancel(pmt_learner* learner);
pmt_score pmt_learner_held_out(const pmt_learner* learner, pmt_state state); /* zeros for one that there is not */
pmt_state pmt_learner_candidate(const pmt_learner* learner);
int32_t pmt_learner_block(const pmt_learner* learner);
pmt_score pmt_learner_trial(const pmt_learner* learner, int32_t block);
pmt_state pmt_learner_in_force(const pmt_learner* learner);
bool pmt_learner_on_trial(const pmt_learner* learner);
int pmt_learner_commit(pmt_learner* learner);
int pmt_learner_confirm(pmt_learner* learner);
int pmt_learner_roll_back(pmt_learner* learner);

const char* pmt_message(int status);

#ifdef __cplusplus
}
#endif
/* NOLINTEND(modernize-use-using, modernize-deprecated-headers) */

#endif /* PMT_LEARNER_H */
