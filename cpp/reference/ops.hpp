// Every operation of a network in the plainest way, from real steps to an int8 output.
#pragma once

#include "reference/tensors.hpp"

namespace pmt::reference {

// clamp(round_half_even(steps) + zero_point)
int8_t quantize(float steps, const OutputRange& range);

// quantize((float(accumulator) + float(bias)) * scale)
int8_t requantize(int64_t accumulator, const Requantization& to, int32_t channel);

// The same for every accumulator of a layer.
Image requantize(const Sums& accumulators, const Requantization& to);

// The inputs of a convolution at one output position.

using Patch = xt::xtensor<int32_t, 3>;  // [kernel_h][kernel_w][channels]

// Input values minus the zero point; 0 where the window reaches into the padding.
Patch patch(const Image& input, int32_t zero_point, const Window& window, int32_t out_y, int32_t out_x);

struct Padding {
  int32_t top, left, bottom, right;
};

// The input in the middle of the zero point.
Image pad(const Image& input, int32_t zero_point, const Padding& padding);

// The same values in NHWC order under another shape.
Image reshape(const Image& input, const Shape& out);

struct Quantized {
  Image values;
  int32_t zero_point;
  float scale;
};

// quantize(((x1 - z1) * s1 + (x2 - z2) * s2) / output_scale), every step rounded to float32.
Image add(const Quantized& first, const Quantized& second, float output_scale, const OutputRange& range);

// The channels of the first and behind them those of the second, each quantize((x - z) * s / output_scale) with the
// quotient of the scales in float32; values that have the output's quantization are only clamped.
Image concatenation(const Quantized& first, const Quantized& second, float output_scale, const OutputRange& range);

// accumulator[y][x][c] = sum(patch(y, x) * weights[c]).
Sums conv2d_sums(const Image& input, int32_t input_zero, const ConvWeights& weights, const Window& window,
                 const Shape& out);

// Output channel c sees input channel c / multiplier alone, multiplier = outputs / inputs:
// accumulator[y][x][c] = sum(patch(y, x)[..][c / multiplier] * weights[..][c]).
Sums depthwise_conv2d_sums(const Image& input, int32_t input_zero, const DepthwiseWeights& weights,
                           const Window& window, const Shape& out);

// accumulator[c] = sum((input - input_zero) * weights[c]), the input read in NHWC order.
Vector<int64_t> fully_connected_sums(const Image& input, int32_t input_zero, const DenseWeights& weights);

// Logits of a linear last op: (accumulator + bias) * scale, not rounded. `scales` are s_x * s_w.
Vector<float> logits(const Image& input, int32_t input_zero, const DenseWeights& weights, const Vector<int32_t>& bias,
                     const Vector<float>& scales);

// Pooling over the part of a window that lies inside the input: padding is not counted.

struct ClampBounds {
  int32_t low, high;
};

Image average_pool(const Image& input, const Window& window, const Shape& out, const ClampBounds& bounds);

Image max_pool(const Image& input, const Window& window, const Shape& out, const ClampBounds& bounds);

// Mean over height and width where input and output are quantized alike.
Image mean(const Image& input, const OutputRange& range);

// quantize((mean - input_zero) * ratio), ratio = s_x / s_y.
Image rescaled_mean(const Image& input, int32_t input_zero, float ratio, const OutputRange& range);

}  // namespace pmt::reference
