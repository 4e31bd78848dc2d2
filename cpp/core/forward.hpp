// The main pass: any range of the network on kept activations, and the loss at its end.
#pragma once

#include "core/workspace.hpp"

namespace pmt {

// Runs ops begin .. end-1 of the main pass; the tensors they read must be in place.
void forward(const Network& network, const Plan& plan, const Workspace& workspace, int32_t begin, int32_t end);

// What the last op reads and may write (its int8 output, where the loss wants that).
struct HeadTensors {
  const int8_t* input[2];
  int8_t* output;
};

// Logits of the last op, into workspace.logits. With int8_logits, or without a linear head, they
// are the scaled int8 output.
void head_logits(const Network& network, const Workspace& workspace, const HeadTensors& tensors, bool int8_logits);

// The same in the main pass, after forward(0, op_count - 1).
void main_logits(const Network& network, const Plan& plan, const Workspace& workspace, bool int8_logits);

// Logits from the last op's int8 output.
void dequantise_logits(const Model& model, const int8_t* output, float* logits);

// Input of an op: the query's own tensor when the query has made it, the main pass's otherwise.
// `first` is the op the query starts at.
const int8_t* query_input(const Model& model, const Plan& plan, const Workspace& workspace, uint32_t tensor,
                          int32_t first);

}  // namespace pmt
