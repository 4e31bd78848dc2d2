#include "core/base/status.hpp"

namespace pmt {
namespace {

const char* image_message(Code code) {
  switch (code) {
    case Code::image_too_short: return "the image is shorter than its header says";
    case Code::image_magic: return "not a .pmt image";
    case Code::image_version: return "a .pmt version that this core does not read";
    case Code::image_checksum: return "the checksum differs: the image is damaged";
    case Code::image_layout: return "a section lies outside the image, overlaps another or is misaligned";
    case Code::image_other: return "not the image of this export: it is damaged, or of another export in the program";
    case Code::image_alignment: return "the image does not start at a 16-byte boundary";
    case Code::tensor_shape: return "a tensor dimension is below 1, or the tensors exceed 2^28 elements";
    case Code::tensor_quantization: return "a tensor's scale must be 1e-12..1e6, its zero point int8";
    case Code::op_kind: return "unknown kind of op, or one that the program was built without";
    case Code::op_tensor: return "a tensor is used before it is produced, or produced twice";
    case Code::op_geometry: return "sums may leave int32, or kernel, stride and padding do not give the output's shape";
    case Code::op_data: return "weights, bias or scales lie outside the data section or share bytes";
    case Code::op_quantization: return "weight scales must be 1e-30..1e6, quantizations must agree";
    case Code::op_clamp: return "clamp bounds must be int8, lower before upper";
    case Code::block_layer: return "a block names an op that has no weights";
    case Code::input_stage: return "a filter or a size of the input stage is outside its bounds";
    case Code::name_range: return "a name lies outside the name section";
    default: return nullptr;
  }
}

const char* option_message(Code code) {
  switch (code) {
    case Code::option_queries: return "queries must be 1..4096, at least 2 with leave-one-out";
    case Code::option_seed: return "XORShift32 needs a seed other than 0";
    case Code::option_learning_rate: return "the learning rate must be finite and >= 0";
    case Code::option_pairs: return "antithetic pairs need an even number of queries";
    case Code::option_nothing_trained: return "neither weights nor biases are trained";
    case Code::option_value: return "an option has a value outside its range";
    case Code::option_loss:
      return "the loss is a function of the host's: the option 'loss' and the function go together";
    case Code::not_linked:
      return "the program was built without this loss, generator, estimator or input stage: export it again with them";
    default: return nullptr;
  }
}

const char* training_message(Code code) {
  switch (code) {
    case Code::ok: return "ok";
    case Code::arena_alignment: return "the arena does not start at a 16-byte boundary";
    case Code::arena_too_small: return "the arena is smaller than the plan needs";
    case Code::layer_not_trainable: return "the op has no weights to train";
    case Code::layer_repeated: return "layers must be ascending, each once, and at least one";
    case Code::plan_streams: return "ops that were chosen to stream cannot: they are of another model or training";
    case Code::surprisal: return "the mean prediction is damaged or of another training";
    case Code::batch_size: return "the batch is empty or larger than planned";
    case Code::estimate_compact:
      return "estimate() needs a trainer opened with compact = false: one with true keeps no gradient of a whole layer";
    case Code::label_range: return "a label is outside 0..classes-1, or missing";
    case Code::label_targets: return "only squared_error and binary_cross_entropy take targets for labels";
    case Code::loss_function: return "the loss function failed; the weights are as before the step";
    case Code::sample_unreadable: return "a sample could not be read";
    case Code::cancelled: return "cancelled; the weights are as before the step";
    default: return nullptr;
  }
}

const char* learner_message(Code code) {
  switch (code) {
    case Code::learner_call: return "the learner's state does not allow this call: see its documentation";
    case Code::learner_samples: return "too few samples for this phase";
    case Code::learner_statistics: return "the learner has no statistics of clean images that fit the model's layers";
    case Code::learner_input: return "filters are chosen where the model has an input stage and samples are its frames";
    case Code::learner_filters:
      return "the stored state has filters of its own: open it by a learner that chooses them";
    case Code::learner_head: return "the model's last layer is not a linear head";
    case Code::learner_full: return "there is no room for another sample";
    case Code::frame_store: return "the frame store failed, or a frame in it has changed";
    case Code::state_storage: return "the storage of states failed";
    case Code::state_size: return "a state of this model does not fit a slot of the storage";
    default: return nullptr;
  }
}

}  // namespace

const char* message(Code code) {
  const char* text = image_message(code);
  if (text == nullptr) text = option_message(code);
  if (text == nullptr) text = training_message(code);
  if (text == nullptr) text = learner_message(code);
  return text != nullptr ? text : "unknown status";
}

}  // namespace pmt
