// The layers to run, as against_onednn.py writes them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

struct Layer {
  std::string name;
  bool depthwise;
  int in_h, in_w, in_c;
  int out_h, out_w, out_c;
  int kernel_h, kernel_w;
  int stride_h, stride_w;
  int pad_top, pad_left;
  int in_zero, out_zero;
  int clamp_min, clamp_max;

  std::vector<int8_t> input;     // one image, NHWC
  std::vector<int8_t> weights;   // (out, in, kh, kw), or (channels, 1, 1, kh, kw)
  std::vector<int32_t> bias;     // one per output channel
  std::vector<float> scales;     // s_x * s_w / s_y, one per output channel
  std::vector<int8_t> expected;  // pmt's output for `input`, NHWC
};

// `folder` holds layers.txt, a line of numbers each, and layers.bin, the arrays one after another.
std::vector<Layer> read_layers(const std::string& folder);
