// The memory of a forward pass on one worker: activations as planned, the kernels' scratch, logits.
#pragma once

#include "core/base/arena.hpp"
#include "core/net/network.hpp"
#include "core/net/plan.hpp"

namespace pmt {

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

// Scratch of the kernels for the op that needs most.
int32_t kernel_scratch_bytes(const Network& network);

// For the main pass alone, on a number of images at once; not with a compact plan.
Activations take_activations(Arena& arena, const Network& network, const Plan& plan, int32_t images);

}  // namespace pmt
