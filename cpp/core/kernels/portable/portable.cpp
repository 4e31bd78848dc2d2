#include "core/kernels/portable/portable.hpp"

#include "core/kernels/linked_ops.hpp"

namespace pmt {

const Kernels& portable_kernels() {
  static constexpr Kernels table = {"portable",
                                    nullptr,
                                    nullptr,
                                    1,
                                    16,
                                    portable::conv2d,
                                    of_op(OpKind::depthwise_conv2d, portable::depthwise_conv2d),
                                    portable::fully_connected,
                                    portable::logits,
                                    of_op(OpKind::add, portable::add),
                                    of_op(OpKind::average_pool, portable::average_pool),
                                    of_op(OpKind::max_pool, portable::max_pool),
                                    of_op(OpKind::mean, portable::mean),
                                    portable::scratch_bytes,
                                    portable::philox_signs,
                                    portable::perturb,
                                    portable::accumulate_signs,
                                    portable::outer_product,
                                    1};
  return table;
}

}  // namespace pmt
