// The stage before a network: a sensor's frame becomes the network's input.
#pragma once

#include "core/image/model.hpp"
#include "core/input/frame.hpp"

namespace pmt {

// Bytes of a frame that the stage of a model reads; of the input itself where it has none.
int64_t frame_bytes(const Model& model);

// Bytes that run_input_stage() needs beside the frame and the input.
int64_t input_stage_bytes(const Model& model);

// Bytes from the start of the input to that of a frame which the input may overwrite, a multiple of 16.
int64_t frame_offset(const Model& model);

// Filters the frame in place, and writes the network's input: apart from the frame, or frame_offset() bytes before it.
// `scratch` is 16-byte aligned; the model has a stage.
void run_input_stage(const Model& model, uint8_t* frame, uint8_t* scratch, int8_t* input);

}  // namespace pmt
