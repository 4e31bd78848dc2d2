// A model made runnable: kernels, and where each layer's weights are (in the image, or in RAM once
// they are trained).
#pragma once

#include "core/base/arena.hpp"
#include "core/image/model.hpp"
#include "core/kernels/table.hpp"

namespace pmt {

// Parameters of one layer, as in the image.
struct Parameters {
  const int8_t* weights;
  const int32_t* bias;
};
template <>
inline constexpr size_t size_on_device<Parameters> = 8;

// Parameters of one layer, for kernels that pack. Biases and scales are padded to their multiple of channels.
struct PackedLayer {
  void* weights;
  int32_t* bias;
  float* scales;        // s_x * s_w / s_y
  float* logit_scales;  // s_x * s_w; of a linear head, else null
};

struct Network {
  const Model* model;
  const Kernels* kernels;
  Parameters* parameters;  // one per op
  PackedLayer* packed;     // one per op; null for kernels that do not pack
};

// Parameters that one call of a layer reads: in the image's form where the kernels do not pack, else
// packed weights and a padded bias.
struct LayerInput {
  const int8_t* weights;
  const int32_t* bias;
  const void* packed;
};

// Points every layer at the image; nothing is packed.
void bind_parameters(const Model& model, Parameters* parameters);

bool packs(const Kernels& kernels);
OpShape op_shape(const Model& model, const OpRecord& op);

// Kernels that pack: takes the memory of every layer's packed form and fills it, unless the arena
// only measures. `network.parameters` is bound.
void pack_network(Arena& arena, Network& network);

// Brings a layer's packed form up to date with its weights and biases.
void repack_layer(const Network& network, int32_t index);

// Brings a layer's scales, where they are kept, up to date with its weight scales.
void rescale_layer(const Network& network, int32_t index);

// Memory one op needs besides its tensors: kernel scratch and the requantization scales.
int32_t op_scratch_bytes(const Network& network, const OpRecord& op);

// Runs one op on the network's own parameters.
void run_op(const Network& network, int32_t index, const OpImages& images, void* scratch);

// The layer's own parameters.
LayerInput layer_input(const Network& network, int32_t index);

// Runs a range of a layer's output channels with other parameters (all start at channel_begin).
void run_layer(const Network& network, int32_t index, const OpImages& images, const LayerInput& parameters,
               int32_t channel_begin, int32_t channel_end, void* scratch);

// A layer with its own weights, but other biases and requantization: out = clamp(rne((acc + bias) *
// scale), -127, 127), without zero point or activation. Both arrays are padded as a PackedLayer's.
struct Requantization {
  const int32_t* bias;
  const float* scales;
};
void run_requantized(const Network& network, int32_t index, const OpImages& images, const Requantization& to,
                     void* scratch);

// s_x * s_w / s_y for every output channel.
void output_scales(const Model& model, const OpRecord& op, float* scales);

// True where the loss can read the last layer's int32 accumulators: a linear last op whose window
// covers its whole input, without a fused activation.
bool has_linear_head(const Model& model);

// Logits of a linear head from its input: (float(acc) + float(bias)) * (s_x * s_w), of a range of
// classes (the parameters start at class_begin, `logits` at class 0 of the first image).
void run_logits(const Network& network, const OpImages& images, const LayerInput& parameters, int32_t class_begin,
                int32_t class_end, void* scratch, float* logits);

}  // namespace pmt
