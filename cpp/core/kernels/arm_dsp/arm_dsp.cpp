#include "core/kernels/arm_dsp/arm_dsp.hpp"

#include "core/kernels/dsp.hpp"
#include "core/kernels/linked_ops.hpp"
#include "core/kernels/portable/portable.hpp"

namespace pmt {
namespace {

int32_t scratch_bytes(const OpShape& shape) {
  switch (shape.kind) {
    case OpKind::conv2d: return arm_dsp::conv2d_scratch_bytes(shape);
    case OpKind::depthwise_conv2d:
      return is_linked(linked::ops, OpKind::depthwise_conv2d) ? arm_dsp::depthwise_scratch_bytes(shape) : 0;
    default: return 0;
  }
}

}  // namespace

const Kernels& arm_dsp_kernels() {
  static constexpr Kernels table = {"arm_dsp",
                                    nullptr,
                                    nullptr,
                                    1,
                                    16,
                                    arm_dsp::conv2d,
                                    of_op(OpKind::depthwise_conv2d, arm_dsp::depthwise_conv2d),
                                    arm_dsp::fully_connected,
                                    arm_dsp::logits,
                                    of_op(OpKind::add, arm_dsp::add),
                                    of_op(OpKind::average_pool, arm_dsp::average_pool),
                                    of_op(OpKind::max_pool, arm_dsp::max_pool),
                                    of_op(OpKind::mean, arm_dsp::mean),
                                    scratch_bytes,
                                    portable::philox_signs,
                                    arm_dsp::perturb,
                                    arm_dsp::accumulate_signs,
                                    portable::outer_product,
                                    1};
  return table;
}

}  // namespace pmt
