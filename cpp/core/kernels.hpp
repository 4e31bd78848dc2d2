// The seam between the engine and its kernels: plain structs in, int8 out. A faster set of kernels
// fills the same table and must give the same bytes as portable_kernels().
#pragma once

#include <cstdint>

#include "core/image_format.hpp"

namespace pmt {

struct Shape {
  int32_t height, width, channels;
};

struct Window {
  int32_t kernel_h, kernel_w;
  int32_t stride_h, stride_w;
  int32_t pad_top, pad_left;
};

// conv2d, depthwise_conv2d and fully_connected of one image (NHWC).
struct LinearArgs {
  const int8_t* input;
  int8_t* output;
  Shape in, out;
  Window window;
  int32_t input_zero, output_zero;
  int32_t clamp_min, clamp_max;
  // Output channels to compute. `weights` and `bias` start at channel_begin (conv2d and
  // fully_connected; depthwise_conv2d always computes all). `scales` starts at channel 0.
  int32_t channel_begin, channel_end;
  const int8_t* weights;
  const int32_t* bias;
  const float* scales;  // s_x * s_w / s_y, one per output channel
  void* scratch;        // at least the bytes that the table's scratch function asks for
};

struct AddArgs {
  const int8_t* input[2];
  int8_t* output;
  int32_t count;
  int32_t input_zero[2], output_zero;
  float input_scale[2], output_scale;
  int32_t clamp_min, clamp_max;
};

struct PoolArgs {
  const int8_t* input;
  int8_t* output;
  Shape in, out;
  Window window;
  int32_t input_zero, output_zero;
  bool same_quantisation;  // mean: no rescaling
  float ratio;             // mean: s_x / s_y
  int32_t clamp_min, clamp_max;
};

struct Kernels {
  const char* name;
  void (*conv2d)(const LinearArgs&);
  void (*depthwise_conv2d)(const LinearArgs&);
  void (*fully_connected)(const LinearArgs&);
  void (*add)(const AddArgs&);
  void (*average_pool)(const PoolArgs&);
  void (*max_pool)(const PoolArgs&);
  void (*mean)(const PoolArgs&);
  // Bytes of scratch, 16-byte aligned, for an op on these shapes.
  int32_t (*scratch_bytes)(OpKind kind, const Shape& in, const Shape& out, int32_t kernel_h, int32_t kernel_w);
};

const Kernels& portable_kernels();

}  // namespace pmt
