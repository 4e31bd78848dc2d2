// Plain C++ kernels, written so that a compiler vectorises them; the definition of the bytes.
#pragma once

#include "core/kernels.hpp"

namespace pmt::portable {

void conv2d(const LinearArgs& args);
void depthwise_conv2d(const LinearArgs& args);
void fully_connected(const LinearArgs& args);
void add(const AddArgs& args);
void average_pool(const PoolArgs& args);
void max_pool(const PoolArgs& args);
void mean(const PoolArgs& args);
int32_t scratch_bytes(OpKind kind, const Shape& in, const Shape& out, int32_t kernel_h, int32_t kernel_w);

}  // namespace pmt::portable
