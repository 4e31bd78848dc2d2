// The seam between the engine and its kernels: plain structs in, int8 out. A faster set of kernels
// fills the same table and must give the same bytes as portable_kernels().
#pragma once

#include <cstdint>

#include "core/base/op_record.hpp"
#include "core/base/random.hpp"

namespace pmt {

struct Shape {
  int32_t height, width, channels;
};

struct Window {
  int32_t kernel_h, kernel_w;
  int32_t stride_h, stride_w;
  int32_t pad_top, pad_left;
};

// Images one after another. A stride is the bytes from an image to the next; 0 where all images
// share one input.
struct Batch {
  int32_t images;
  int32_t input_stride, output_stride;
};

// conv2d, depthwise_conv2d and fully_connected (NHWC).
struct LinearArgs {
  const int8_t* input;
  int8_t* output;
  Batch batch;
  Shape in, out;
  Window window;
  int32_t input_zero, output_zero;
  int32_t clamp_min, clamp_max;
  // Output channels to compute. `weights` and `bias` start at channel_begin (conv2d and
  // fully_connected; depthwise_conv2d always computes all). `scales` starts at channel 0. Kernels
  // that pack always compute all channels.
  int32_t channel_begin, channel_end;
  const int8_t* weights;
  const int32_t* bias;
  const float* scales;  // s_x * s_w / s_y, one per output channel
  const void* packed;   // what pack() wrote for these very shapes; null for kernels that do not pack
  void* scratch;        // at least the bytes that the table's scratch function asks for
};

struct AddArgs {
  const int8_t* input[2];
  int8_t* output;
  int32_t images, count;  // elements of one image
  int32_t input_stride[2], output_stride;
  int32_t input_zero[2], output_zero;
  float input_scale[2], output_scale;
  int32_t clamp_min, clamp_max;
};

struct PoolArgs {
  const int8_t* input;
  int8_t* output;
  Batch batch;
  Shape in, out;
  Window window;
  int32_t input_zero, output_zero;
  bool same_quantization;  // mean: no rescaling
  float ratio;             // mean: s_x / s_y
  int32_t clamp_min, clamp_max;
};

// All that decides the packed form of a layer's weights.
struct OpShape {
  OpKind kind;
  Shape in, out;
  Window window;
};

// packed = clamp(weights + mu * signs, -127, 127) in the kernels' own layout; signs may be null.
struct PackArgs {
  OpShape shape;
  int32_t input_zero;
  const int8_t* weights;  // of the whole layer, as in the image
  const int8_t* signs;    // one per weight
  int32_t mu;
  void* packed;
};

// sums[channel][tap] += sum over positions of gradient[position][channel] * patches[position][tap].
struct OuterProductArgs {
  const int32_t* gradient;
  const int16_t* patches;
  int32_t positions, channels, taps;
  int64_t* sums;
};

struct Kernels {
  const char* name;

  // Bytes of a layer's packed weights, and what writes them; null where the kernels read the image's own layout.
  int64_t (*packed_bytes)(const OpShape& shape);
  void (*pack)(const PackArgs& args);
  // `bias` and `scales` are readable up to a multiple of this many channels.
  int32_t channel_multiple;
  // Alignment of packed weights, biases, scales, scratch and activations, in bytes.
  int32_t alignment;

  void (*conv2d)(const LinearArgs&);
  void (*depthwise_conv2d)(const LinearArgs&);
  void (*fully_connected)(const LinearArgs&);
  // The last layer without requantization: logits[image][c] = (float(acc) + float(bias)) * scales[c].
  // Its window covers the whole input, unpadded; args.output is not used.
  void (*logits)(const LinearArgs&, float* logits);
  void (*add)(const AddArgs&);
  void (*average_pool)(const PoolArgs&);
  void (*max_pool)(const PoolArgs&);
  void (*mean)(const PoolArgs&);
  // Bytes of scratch for an op on these shapes.
  int32_t (*scratch_bytes)(const OpShape& shape);

  // Signs of whole Philox blocks, 128 each: bit 0 gives +1, bit 1 gives -1, least significant first.
  void (*philox_signs)(const StreamId& id, uint32_t first_block, int32_t blocks, int8_t* signs);
  // perturbed[i] = clamp(values[i] + mu * signs[i], low, high).
  void (*perturb)(const int8_t* values, const int8_t* signs, int32_t count, int32_t mu, int32_t low, int32_t high,
                  int8_t* perturbed);
  // sums[i] += factor * signs[i].
  void (*accumulate_signs)(const int8_t* signs, int32_t count, int32_t factor, int32_t* sums);
  void (*outer_product)(const OuterProductArgs& args);
  // Positions that outer_product() likes to be given at once.
  int32_t outer_positions;
};

const Kernels& portable_kernels();
// For Armv7E-M's DSP extension with a single-precision FPU (Cortex-M4F, M7, M33); elsewhere the same
// steps in plain C++, slower than portable_kernels().
const Kernels& arm_dsp_kernels();
// The fastest that the core is compiled for.
const Kernels& device_kernels();

}  // namespace pmt
