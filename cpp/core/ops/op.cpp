#include "core/ops/op.hpp"

#include "core/base/linked/ops.hpp"
#include "core/base/linked/parts.hpp"
#include "core/ops/definitions.hpp"

namespace pmt {
namespace {

#define PMT_DEFINED_OP(name) , is_linked(linked::ops, OpKind::name) ? &name##_op : nullptr
const OpDefinition* const definitions[] = {nullptr PMT_OPS(PMT_DEFINED_OP)};
#undef PMT_DEFINED_OP

}  // namespace

const OpDefinition* definition_of(OpKind kind) {
  return words<OpKind>.holds(kind) ? definitions[static_cast<uint32_t>(kind)] : nullptr;
}

int32_t element_count(const TensorRecord& tensor) { return tensor.height * tensor.width * tensor.channels; }

bool have_same_quantization(const TensorRecord& a, const TensorRecord& b) {
  return a.scale == b.scale && a.zero_point == b.zero_point;
}

bool have_same_shape(const TensorRecord& a, const TensorRecord& b) {
  return a.height == b.height && a.width == b.width && a.channels == b.channels;
}

bool padding_is_valid(const OpRecord& op, int32_t limit_h, int32_t limit_w) {
  return op.pad_top >= 0 && op.pad_left >= 0 && op.pad_bottom >= 0 && op.pad_right >= 0 && op.pad_top < limit_h &&
         op.pad_bottom < limit_h && op.pad_left < limit_w && op.pad_right < limit_w;
}

bool window_fits(const OpTensors& tensors) {
  const OpRecord& op = tensors.op;
  const TensorRecord &in = *tensors.in[0], &out = tensors.out;
  const bool sizes = op.kernel_h >= 1 && op.kernel_w >= 1 && op.kernel_h <= 255 && op.kernel_w <= 255 &&
                     op.stride_h >= 1 && op.stride_w >= 1 && op.stride_h <= 255 && op.stride_w <= 255;
  if (!sizes || !padding_is_valid(op, op.kernel_h, op.kernel_w)) return false;
  const int32_t room_h = in.height + op.pad_top + op.pad_bottom - op.kernel_h;
  const int32_t room_w = in.width + op.pad_left + op.pad_right - op.kernel_w;
  return room_h >= 0 && room_w >= 0 && room_h / op.stride_h + 1 == out.height && room_w / op.stride_w + 1 == out.width;
}

Window window_of(const OpRecord& op) {
  return {op.kernel_h, op.kernel_w, op.stride_h, op.stride_w, op.pad_top, op.pad_left};
}

Batch batch_of(const OpImages& images) { return {images.images, images.input_stride[0], images.output_stride}; }

}  // namespace pmt
