// A tensor and an op as the .pmt image has them.
#pragma once

#include <cstdint>

#include "core/base/words.hpp"

namespace pmt {

constexpr uint32_t no_tensor = 0xFFFFFFFFu;
constexpr int32_t largest_side = 4096;  // height or width of a tensor

struct TensorRecord {
  int32_t height;
  int32_t width;
  int32_t channels;
  float scale;
  int32_t zero_point;
  uint32_t name;  // offset inside the name section
};
static_assert(sizeof(TensorRecord) == 24, "part of the file format");

// Every kind of op, in the order of the numbers that they have in an image, from 1 on.
#define PMT_OPS(op)                                                                                          \
  op(conv2d) op(depthwise_conv2d) op(fully_connected) op(add) op(average_pool) op(max_pool) op(mean) op(pad) \
      op(reshape) op(concatenation)

#define PMT_ENUMERATOR(name) , name
#define PMT_WORD(name) ", " #name
enum class OpKind : uint32_t { none PMT_OPS(PMT_ENUMERATOR) };
constexpr const char* joined_words(OpKind) { return "none" PMT_OPS(PMT_WORD); }
#undef PMT_ENUMERATOR
#undef PMT_WORD

struct OpRecord {
  OpKind kind;  // not none
  uint32_t name;
  uint32_t input[2];  // tensor indices; no_tensor where unused
  uint32_t output;
  int32_t kernel_h, kernel_w;
  int32_t stride_h, stride_w;
  int32_t pad_top, pad_left, pad_bottom, pad_right;
  int32_t clamp_min, clamp_max;  // of the int8 output (fused ReLU, ReLU6)
  // Inside the data section, int8, 16-byte aligned: [out][kernel_h][kernel_w][in] of conv2d,
  // [kernel_h][kernel_w][out] of depthwise_conv2d, [out][in elements] of fully_connected.
  uint32_t weight_offset;
  uint32_t bias_offset;   // int32, one per output channel
  uint32_t scale_offset;  // float weight scale, one per output channel
};
static_assert(sizeof(OpRecord) == 72, "part of the file format");

}  // namespace pmt
