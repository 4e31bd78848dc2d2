// The main pass: any range of the network on kept activations, and the loss at its end.
#pragma once

#include "core/net/activations.hpp"

namespace pmt {

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
