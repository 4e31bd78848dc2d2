// A weight of depthwise_conv2d as kernels that pack it multiply it.
#pragma once

#include "core/arithmetic.hpp"
#include "core/kernels.hpp"

namespace pmt::host {
namespace {

// Perturbed where there are signs; 0 outside of the window and behind the last channel.
inline int32_t depthwise_weight(const PackArgs& args, int32_t ky, int32_t kx, int32_t channel) {
  const Window& w = args.shape.window;
  const int32_t channels = args.shape.out.channels;
  if (ky < 0 || ky >= w.kernel_h || kx >= w.kernel_w || channel >= channels) return 0;
  const int32_t at = (ky * w.kernel_w + kx) * channels + channel;
  const int32_t weight = args.weights[at];
  return args.signs == nullptr ? weight : clamp(weight + args.mu * args.signs[at], -127, 127);
}

}  // namespace
}  // namespace pmt::host
