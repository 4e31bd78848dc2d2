#include "tests/model_consistency.hpp"

#include <vector>

namespace pmt::tests {
namespace {

// The number of windows by trying every start.
bool windows_fit(int32_t in, int32_t kernel, int32_t stride, int32_t before, int32_t after, int32_t out) {
  if (kernel < 1 || stride < 1 || before < 0 || after < 0) return false;
  int64_t count = 0;
  for (int64_t start = -static_cast<int64_t>(before); start + kernel <= static_cast<int64_t>(in) + after;
       start += stride) {
    if (start + kernel <= 0 || start >= in) return false;  // a window of padding alone
    ++count;
  }
  return count == out;
}

bool window_is_consistent(const OpRecord& op, const TensorRecord& in, const TensorRecord& out) {
  return windows_fit(in.height, op.kernel_h, op.stride_h, op.pad_top, op.pad_bottom, out.height) &&
         windows_fit(in.width, op.kernel_w, op.stride_w, op.pad_left, op.pad_right, out.width);
}

int64_t elements(const TensorRecord& tensor) {
  return static_cast<int64_t>(tensor.height) * tensor.width * tensor.channels;
}

bool data_is_consistent(const Model& model, const OpRecord& op, int64_t weights) {
  const Section& data = model.header().data;
  const int64_t channels = model.output_of(op).channels;
  const auto inside = [&](uint32_t offset, int64_t bytes) {
    return offset + bytes <= static_cast<int64_t>(data.count);
  };
  if (weights != weight_count(model, op)) return false;
  if (!inside(op.weight_offset, weights) || !inside(op.bias_offset, 4 * channels)) return false;
  if (!inside(op.scale_offset, 4 * channels)) return false;
  for (int32_t c = 0; c < channels; ++c) {
    if (!(model.weight_scales(op)[c] >= 1e-30f && model.weight_scales(op)[c] <= 1e6f)) return false;
  }
  return true;
}

bool same_quantization(const TensorRecord& a, const TensorRecord& b) {
  return a.scale == b.scale && a.zero_point == b.zero_point;
}

bool op_is_consistent(const Model& model, const OpRecord& op) {
  const TensorRecord& in = model.input_of(op);
  const TensorRecord& out = model.output_of(op);
  const int64_t kernel = static_cast<int64_t>(op.kernel_h) * op.kernel_w;
  switch (op.kind) {
    case OpKind::conv2d:
      return window_is_consistent(op, in, out) && data_is_consistent(model, op, kernel * in.channels * out.channels);
    case OpKind::depthwise_conv2d:
      return window_is_consistent(op, in, out) && out.channels >= in.channels && out.channels % in.channels == 0 &&
             data_is_consistent(model, op, kernel * out.channels);
    case OpKind::fully_connected: return data_is_consistent(model, op, elements(in) * out.channels);
    case OpKind::add: return elements(in) == elements(out) && elements(model.input_of(op, 1)) == elements(out);
    case OpKind::average_pool:
    case OpKind::max_pool:
      return window_is_consistent(op, in, out) && in.channels == out.channels && same_quantization(in, out);
    case OpKind::mean: return elements(out) == in.channels && out.channels == in.channels;
    case OpKind::pad:
      return out.height == in.height + op.pad_top + op.pad_bottom && out.channels == in.channels &&
             out.width == in.width + op.pad_left + op.pad_right && op.pad_top >= 0 && op.pad_left >= 0 &&
             op.pad_bottom >= 0 && op.pad_right >= 0 && same_quantization(in, out);
    case OpKind::reshape: return elements(in) == elements(out) && same_quantization(in, out);
    case OpKind::concatenation:
      return elements(in) + elements(model.input_of(op, 1)) == elements(out) && in.height == out.height &&
             model.input_of(op, 1).height == out.height && in.width == out.width;
    case OpKind::none: break;
  }
  return false;
}

bool tensors_are_consistent(const Model& model) {
  for (int32_t i = 0; i < model.tensor_count(); ++i) {
    const TensorRecord& tensor = model.tensor(i);
    if (tensor.height < 1 || tensor.width < 1 || tensor.channels < 1 || elements(tensor) > (1 << 28)) return false;
    if (!(tensor.scale > 0.0f && tensor.scale < 1e7f)) return false;
    if (tensor.zero_point < -128 || tensor.zero_point > 127) return false;
    if (tensor.name >= model.header().names.count) return false;
  }
  return true;
}

bool blocks_are_consistent(const Model& model) {
  for (int32_t b = 0; b < model.block_count(); ++b) {
    for (uint32_t k = 0; k < model.block(b).count; ++k) {
      const int32_t layer = model.block_layer(model.block(b), k);
      if (layer < 0 || layer >= model.op_count() || !has_weights(model.op(layer))) return false;
    }
  }
  return true;
}

}  // namespace

bool small_enough_to_run(const Model& model) {
  int64_t work = 0;
  for (int32_t i = 0; i < model.op_count(); ++i) {
    work += mac_count(model, model.op(i)) + element_count(model.input_of(model.op(i)));
  }
  for (int32_t i = 0; i < model.tensor_count(); ++i) work += element_count(model.tensor(i));
  return work < 500000;
}

bool is_consistent(const Model& model, size_t image_bytes) {
  if (model.header().image_bytes != image_bytes) return false;
  if (!tensors_are_consistent(model) || !blocks_are_consistent(model)) return false;
  std::vector<bool> ready(static_cast<size_t>(model.tensor_count()), false);
  ready[model.header().input_tensor] = true;
  for (int32_t i = 0; i < model.op_count(); ++i) {
    const OpRecord& op = model.op(i);
    if (!ready[op.input[0]] || ready[op.output]) return false;
    const bool reads_two = op.kind == OpKind::add || op.kind == OpKind::concatenation;
    if (reads_two != (op.input[1] != no_tensor)) return false;
    if (reads_two && !ready[op.input[1]]) return false;
    if (op.clamp_min < -128 || op.clamp_max > 127 || op.clamp_min >= op.clamp_max) return false;
    if (!op_is_consistent(model, op)) return false;
    ready[op.output] = true;
  }
  return ready[model.header().output_tensor];
}

}  // namespace pmt::tests
