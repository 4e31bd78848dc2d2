// A model made runnable: kernels, and where each layer's weights are (in the image, or in RAM once
// they are trained).
#pragma once

#include "core/kernels.hpp"
#include "core/model.hpp"

namespace pmt {

struct Parameters {
  const int8_t* weights;
  const int32_t* bias;
};

struct Network {
  const Model* model;
  const Kernels* kernels;
  Parameters* parameters;  // one per op
};

// Points every layer at the image.
void bind_parameters(const Model& model, Parameters* parameters);

// Memory one op needs besides its tensors: kernel scratch and the requantisation scales.
int32_t op_scratch_bytes(const Network& network, const OpRecord& op);

// Runs one op of one image on the network's own parameters.
void run_op(const Network& network, int32_t index, const int8_t* input0, const int8_t* input1, int8_t* output,
            void* scratch);

// Runs a range of a layer's output channels with other parameters (both start at channel_begin).
void run_layer(const Network& network, int32_t index, const int8_t* input, int8_t* output, Parameters parameters,
               int32_t channel_begin, int32_t channel_end, void* scratch);

// s_x * s_w / s_y for every output channel.
void output_scales(const Model& model, const OpRecord& op, float* scales);

// True where the loss can read the last layer's int32 accumulators: a linear last op whose window
// covers its whole input.
bool has_linear_head(const Model& model);

// Logits of a linear head from its input: (float(acc) + float(bias)) * (s_x * s_w), of a range of
// classes (the parameters start at class_begin, `logits` at class 0).
void run_logits(const Network& network, const int8_t* input, Parameters parameters, int32_t class_begin,
                int32_t class_end, float* logits);

}  // namespace pmt
