// Errors of the core: a code and the op it concerns. The host turns them into exceptions, once.
#pragma once

#include <cstdint>

namespace pmt {

enum class Code : int32_t {
  ok = 0,
  image_too_short,         // none, or fewer bytes than the header, or than the header says
  image_magic,             // not a .pmt image
  image_version,           // a version this core does not read
  image_checksum,          // CRC-32 differs: the file is damaged
  image_layout,            // a section lies outside the image, overlaps another or is misaligned
  image_other,             // a sound image, but not the one that the program was exported with
  image_alignment,         // the memory that holds the image is not 16-byte aligned
  tensor_shape,            // a dimension is below 1, or all tensors together exceed 2^28 elements
  tensor_quantization,     // a scale is outside its bounds, or a zero point outside int8
  op_kind,                 // unknown op
  op_tensor,               // an input is used before it is produced, or a tensor has two producers
  op_geometry,             // kernel, stride or padding does not give the output's shape, or sums leave int32
  op_data,                 // weights, bias or scales lie outside the data section or share bytes
  op_quantization,         // a weight scale is outside its bounds, or quantizations must be equal
  op_clamp,                // clamp bounds outside int8 or the wrong way round
  block_layer,             // a block names an op that has no weights
  input_stage,             // a filter or a size of the input stage is outside its bounds
  name_range,              // a name lies outside the name section or is not terminated
  arena_alignment,         // the arena does not start at a 16-byte boundary
  arena_too_small,         // the memory handed over is smaller than the plan, or there is none
  option_queries,          // leave-one-out needs two
  option_seed,             // XORShift32 needs a seed other than 0
  option_learning_rate,    // not finite or negative
  option_nothing_trained,  // neither weights nor biases
  option_pairs,            // antithetic pairs with odd queries
  option_value,            // outside its own range; the index is the place in for_each_option()
  option_loss,             // a loss function without the option that names it, or the other way round
  not_linked,              // a loss, a generator, an estimator or an input stage that this program was built without
  layer_not_trainable,     // the op has no weights
  layer_repeated,          // the same layer twice, or layers not ascending
  plan_streams,            // ops that are said to stream cannot
  surprisal,               // a mean prediction that no step can have left
  batch_size,              // batch below 1 or above what the plan was made for
  estimate_compact,        // a compact trainer keeps no gradient of a whole layer
  label_range,             // a label outside 0..classes-1
  label_targets,           // targets for a loss that takes labels
  loss_function,           // a loss of the host's own failed; weights are as before the step
  sample_unreadable,       // the sample source failed
  cancelled,               // the caller asked to stop; weights are as before the step
  learner_call,            // a call that the learner's state does not allow: a phase runs, or a candidate is missing
  learner_samples,         // too few samples for the phase
  learner_statistics,      // alignment without statistics of clean images, or with those of other layers
  learner_input,           // filters are to be chosen without an input stage, or without frames of the sensor
  learner_filters,         // a state with filters of its own, in a learner that keeps the outputs of the image's
  learner_head,            // the last layer is not a linear head
  learner_full,            // there is no room for another sample
  frame_store,             // a frame cannot be written or read
  state_storage,           // the storage of states failed
  state_size,              // a state does not fit its slot
};

struct Status {
  Code code = Code::ok;
  int32_t op = -1;  // index of the op, layer or option concerned, -1 if none
  constexpr bool ok() const { return code == Code::ok; }
};

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
