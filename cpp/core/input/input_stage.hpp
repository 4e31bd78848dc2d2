// The stage before a network: a sensor's frame becomes the network's input.
#pragma once

#include "core/image/model.hpp"
#include "core/input/frame.hpp"

namespace pmt {

// Bytes of a frame that the stage of a model reads; of the input itself where it has none.
int64_t frame_bytes(const Model& model);

// Bytes that run_input_stage() needs beside the frame and the input, with any filters.
int64_t input_stage_bytes(const Model& model);

// A stage in one block of memory: the input at its start, 16-byte aligned, the frame, which the input overwrites, and
// the scratch memory.
struct StageMemory {
  int64_t frame, scratch, bytes;  // offsets, and of all
};
StageMemory stage_memory(const Model& model);

// Filters the frame in place, and writes the network's input: apart from the frame, or where stage_memory() says.
// `scratch` is 16-byte aligned; the model has a stage.
void run_input_stage(const Model& model, uint8_t* frame, uint8_t* scratch, int8_t* input);

}  // namespace pmt
