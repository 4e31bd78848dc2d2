// The entries that all x86 tables share, and the headers of every such translation unit.
#pragma once

#include "host/kernels/add_avx2.hpp"
#include "host/kernels/depthwise_avx2.hpp"
#include "host/kernels/layer_kernels.hpp"
#include "host/kernels/outer_product_avx2.hpp"
#include "host/kernels/pooling_avx2.hpp"
#include "host/kernels/signs_avx2.hpp"

namespace pmt::host {
namespace {

struct TableX86 {
  static Kernels without_layers() {
    Kernels table = portable_kernels();
    table.add = AddAvx2::add;
    table.average_pool = PoolingAvx2::average_pool;
    table.max_pool = PoolingAvx2::max_pool;
    table.mean = PoolingAvx2::mean;
    table.philox_signs = SignsAvx2::philox_signs;
    table.perturb = SignsAvx2::perturb;
    table.accumulate_signs = SignsAvx2::accumulate_signs;
    table.outer_product = OuterProductAvx2::outer_product;
    table.outer_positions = OuterProductAvx2::positions_at_once;
    return table;
  }
};

}  // namespace
}  // namespace pmt::host
