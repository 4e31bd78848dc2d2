// The main pass: any range of the network on kept activations, and the loss at its end.
#pragma once

#include "core/base/arena.hpp"
#include "core/net/network.hpp"
#include "core/net/plan.hpp"

namespace pmt {

// The memory of a forward pass on one worker: activations as planned, the kernels' scratch, logits.

struct Activations {
  uint8_t* activations;  // plan.bytes(), of one image; of several in inference
  uint8_t* queries;      // where query tensors are: in the activations, or apart
  uint8_t* scratch;      // of the kernels; patches in the gradient. In a compact plan, among the activations
  float* logits;         // one per class, of every image at once

  uint8_t* scratch_of(const Plan& plan, Pass pass, int32_t op) const {
    return plan.is_compact() ? activations + plan.scratch_offset(pass, op) : scratch;
  }

  int8_t* tensor(const Plan& plan, Pass pass, uint32_t index, int32_t images = 1) const {
    uint8_t* memory = pass == Pass::main ? activations : queries;
    return reinterpret_cast<int8_t*>(memory) + plan.offset(pass, static_cast<int32_t>(index)) * images;
  }
};

// Inputs and output of an op in queries from op `first` on, a number of them at once. A tensor that no query has made
// is the main pass's, the same for all.
inline OpImages query_images(const Model& model, const Plan& plan, const Activations& memory, int32_t first,
                             int32_t count, int32_t index) {
  const OpRecord& op = model.op(index);
  OpImages images = {count, {nullptr, nullptr}, {0, 0}, nullptr, 0, op_shape(model, op)};
  for (int i = 0; i < 2; ++i) {
    if (op.input[i] == no_tensor) continue;
    const bool own = plan.producer(op.input[i]) >= first;
    images.input[i] =
        own ? memory.tensor(plan, Pass::query, op.input[i], count) : memory.tensor(plan, Pass::main, op.input[i]);
    images.input_stride[i] = own ? plan.size(static_cast<int32_t>(op.input[i])) : 0;
  }
  images.output = memory.tensor(plan, Pass::query, op.output, count);
  images.output_stride = plan.size(static_cast<int32_t>(op.output));
  return images;
}

// Scratch of the kernels for the op that needs most.
int32_t kernel_scratch_bytes(const Network& network);

// For the main pass alone, on a number of images at once; not with a compact plan.
Activations take_activations(Arena& arena, const Network& network, const Plan& plan, int32_t images);

// Runs ops begin .. end-1 of the main pass on a number of images, one after another in every
// tensor's place; the tensors they read must be there. Segments that stream run whole, and on one image.
void forward(const Network& network, const Plan& plan, const Activations& memory, int32_t images, int32_t begin,
             int32_t end);

// Logits of the last op, into memory.logits, image by image. With int8_logits, or without a
// linear head, they are the scaled int8 output.
void head_logits(const Network& network, const Activations& memory, const OpImages& images, bool int8_logits,
                 void* scratch);

// The same in the main pass, after forward(.., 0, op_count - 1).
void main_logits(const Network& network, const Plan& plan, const Activations& memory, int32_t images, bool int8_logits);

// Logits from the last op's int8 output.
void dequantize_logits(const Model& model, const OpImages& images, float* logits);

}  // namespace pmt
