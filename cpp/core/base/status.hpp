// Errors of the core: a code and the op it concerns. The host turns them into exceptions, once.
#pragma once

#include <cstdint>

// The codes from 0 on, and their messages.
#define PMT_STATUS_CODES(X)                                                                                     \
  X(ok, "ok")                                                                                                   \
  X(image_too_short, "the image is shorter than its header says")                                               \
  X(image_magic, "not a .pmt image")                                                                            \
  X(image_version, "a .pmt version that this core does not read")                                               \
  X(image_checksum, "the checksum differs: the image is damaged")                                               \
  X(image_layout, "a section lies outside the image, overlaps another or is misaligned")                        \
  X(image_other, "not the image of this export: it is damaged, or of another export in the program")            \
  X(image_alignment, "the image does not start at a 16-byte boundary")                                          \
  X(tensor_shape, "a tensor dimension is below 1, or the tensors exceed 2^28 elements")                         \
  X(tensor_quantization, "a tensor's scale must be 1e-12..1e6, its zero point int8")                            \
  X(op_kind, "unknown kind of op, or one that the program was built without")                                   \
  X(op_tensor, "a tensor is used before it is produced, or produced twice")                                     \
  X(op_geometry, "sums may leave int32, or kernel, stride and padding do not give the output's shape")          \
  X(op_data, "weights, bias or scales lie outside the data section or share bytes")                             \
  X(op_quantization, "weight scales must be 1e-30..1e6, quantizations must agree")                              \
  X(op_clamp, "clamp bounds must be int8, lower before upper")                                                  \
  X(block_layer, "a block names an op that has no weights")                                                     \
  X(input_stage, "a filter or a size of the input stage is outside its bounds")                                 \
  X(name_range, "a name lies outside the name section")                                                         \
  X(arena_alignment, "the arena does not start at a 16-byte boundary")                                          \
  X(arena_too_small, "the arena is smaller than the plan needs")                                                \
  X(option_queries, "queries must be 1..4096, at least 2 with leave-one-out")                                   \
  X(option_seed, "XORShift32 needs a seed other than 0")                                                        \
  X(option_learning_rate, "the learning rate must be finite and >= 0")                                          \
  X(option_nothing_trained, "neither weights nor biases are trained")                                           \
  X(option_pairs, "antithetic pairs need an even number of queries")                                            \
  X(option_value, "an option has a value outside its range")                                                    \
  X(option_loss, "the loss is a function of the host's: the option 'loss' and the function go together")        \
  X(not_linked,                                                                                                 \
    "the program was built without this loss, generator, estimator or input stage: export it again with them")  \
  X(layer_not_trainable, "the op has no weights to train")                                                      \
  X(layer_repeated, "layers must be ascending, each once, and at least one")                                    \
  X(plan_streams, "ops that were chosen to stream cannot: they are of another model or training")               \
  X(surprisal, "the mean prediction is damaged or of another training")                                         \
  X(batch_size, "the batch is empty or larger than planned")                                                    \
  X(estimate_compact,                                                                                           \
    "estimate() needs a trainer opened with compact = false: one with true keeps no gradient of a whole layer") \
  X(label_range, "a label is outside 0..classes-1, or missing")                                                 \
  X(label_targets, "only squared_error and binary_cross_entropy take targets for labels")                       \
  X(loss_function, "the loss function failed; the weights are as before the step")                              \
  X(sample_unreadable, "a sample could not be read")                                                            \
  X(cancelled, "cancelled; the weights are as before the step")                                                 \
  X(learner_call, "the learner's state does not allow this call: see its documentation")                        \
  X(learner_open, "the learner is not open")                                                                    \
  X(learner_clock, "a budget in milliseconds needs a clock")                                                    \
  X(learner_epochs, "the set-up names no layers to train")                                                      \
  X(learner_samples, "too few samples or classes for this phase")                                               \
  X(learner_statistics, "the learner has no statistics of clean images that fit the model's layers")            \
  X(learner_input, "filters are chosen where the model has an input stage and samples are its frames")          \
  X(learner_filters, "the stored state has filters of its own: open it by a learner that chooses them")         \
  X(learner_head, "the model's last layer is not a linear head")                                                \
  X(learner_full, "there is no room for another sample")                                                        \
  X(frame_store, "the frame store failed, or a frame in it has changed")                                        \
  X(state_storage, "the storage of states failed")                                                              \
  X(state_size, "a state of this model does not fit a slot of the storage")                                     \
  X(learner_object, "a null object, set-up or image, or an object not aligned to 8 bytes")

namespace pmt {

enum class Code : int8_t {
#define PMT_CODE(code, message) code,
  PMT_STATUS_CODES(PMT_CODE)
#undef PMT_CODE
};

// One word, which functions return in a register: 3 KB less code on a Cortex-M7 than two.
class Status {
 public:
  // NOLINTNEXTLINE(google-explicit-constructor): functions return {code}.
  constexpr Status(Code what = Code::ok, int32_t index = -1)
      : code(what), index_(static_cast<uint32_t>(index > most_index ? -1 : index) & 0xFFFFFFu) {}

  constexpr bool ok() const { return code == Code::ok; }
  // The place of the op, layer, option or sample concerned; -1 where there is none, or it is above `most_index`.
  constexpr int32_t index() const { return static_cast<int32_t>(uint32_t{index_} << 8) >> 8; }

  Code code;

 private:
  static constexpr int32_t most_index = (1 << 23) - 1;
  uint32_t index_ : 24;
};

static_assert(sizeof(Status) == 4);

// The first that is not ok, if there is one.
inline Status first_error(const Status* statuses, int32_t count) {
  for (int32_t i = 0; i < count; ++i) {
    if (!statuses[i].ok()) return statuses[i];
  }
  return {};
}

const char* message(Code code);

}  // namespace pmt

#define PMT_RETURN_IF_ERROR(expression)            \
  do {                                             \
    const ::pmt::Status pmt_status = (expression); \
    if (!pmt_status.ok()) return pmt_status;       \
  } while (0)
