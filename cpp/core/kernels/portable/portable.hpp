// Plain C++ kernels, written so that a compiler vectorizes them; the definition of the bytes.
#pragma once

#include "core/kernels/table.hpp"

namespace pmt::portable {

void conv2d(const LinearArgs& args);
void depthwise_conv2d(const LinearArgs& args);
void fully_connected(const LinearArgs& args);
void logits(const LinearArgs& args, float* logits);
void add(const AddArgs& args);
void average_pool(const PoolArgs& args);
void max_pool(const PoolArgs& args);
void mean(const PoolArgs& args);
int32_t scratch_bytes(const OpShape& shape);

void philox_signs(const StreamId& id, uint32_t first_block, int32_t blocks, int8_t* signs);
void perturb(const int8_t* values, const int8_t* signs, int32_t count, int32_t mu, int32_t low, int32_t high,
             int8_t* perturbed);
void accumulate_signs(const int8_t* signs, int32_t count, int32_t factor, int32_t* sums);
void outer_product(const OuterProductArgs& args);

}  // namespace pmt::portable
