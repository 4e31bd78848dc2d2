#include <immintrin.h>

#include <cstddef>

#include "core/kernels/portable.hpp"
#include "host/kernels/kernel_choice.hpp"

#pragma GCC push_options
#pragma GCC target("avx2")

#include "host/kernels/isa_avx2.hpp"
//
#include "host/kernels/gemm_tile.hpp"
//
#include "host/kernels/gemm_pack.hpp"
//
#include "host/kernels/gemm.hpp"

#pragma GCC pop_options
