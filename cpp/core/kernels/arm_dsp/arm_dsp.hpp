// Kernels for cores with Armv7E-M's DSP extension and a single-precision FPU: Cortex-M4F, M7, M33.
#pragma once

#include "core/kernels/table.hpp"

namespace pmt::arm_dsp {

void conv2d(const LinearArgs& args);
int32_t conv2d_scratch_bytes(const OpShape& shape);
void depthwise_conv2d(const LinearArgs& args);
int32_t depthwise_scratch_bytes(const OpShape& shape);
void fully_connected(const LinearArgs& args);
void logits(const LinearArgs& args, float* logits);
void add(const AddArgs& args);
void average_pool(const PoolArgs& args);
void max_pool(const PoolArgs& args);
void mean(const PoolArgs& args);

void perturb(const int8_t* values, const int8_t* signs, int32_t count, int32_t mu, int32_t low, int32_t high,
             int8_t* perturbed);
void accumulate_signs(const int8_t* signs, int32_t count, int32_t factor, int32_t* sums);

}  // namespace pmt::arm_dsp
