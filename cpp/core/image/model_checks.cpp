#include "core/image/model_checks.hpp"

namespace pmt {
namespace {

bool same_quantization(const TensorRecord& a, const TensorRecord& b) {
  return a.scale == b.scale && a.zero_point == b.zero_point;
}

bool same_shape(const TensorRecord& a, const TensorRecord& b) {
  return a.height == b.height && a.width == b.width && a.channels == b.channels;
}

// Whether a window goes over the input.
bool slides(OpKind kind) {
  return kind == OpKind::conv2d || kind == OpKind::depthwise_conv2d || kind == OpKind::average_pool ||
         kind == OpKind::max_pool;
}

bool padding_is_valid(const OpRecord& op, int32_t limit_h, int32_t limit_w) {
  return op.pad_top >= 0 && op.pad_left >= 0 && op.pad_bottom >= 0 && op.pad_right >= 0 && op.pad_top < limit_h &&
         op.pad_bottom < limit_h && op.pad_left < limit_w && op.pad_right < limit_w;
}

bool window_fits(const OpRecord& op, const TensorRecord& in, const TensorRecord& out) {
  const bool sizes = op.kernel_h >= 1 && op.kernel_w >= 1 && op.kernel_h <= 255 && op.kernel_w <= 255 &&
                     op.stride_h >= 1 && op.stride_w >= 1 && op.stride_h <= 255 && op.stride_w <= 255;
  if (!sizes || !padding_is_valid(op, op.kernel_h, op.kernel_w)) return false;
  const int32_t room_h = in.height + op.pad_top + op.pad_bottom - op.kernel_h;
  const int32_t room_w = in.width + op.pad_left + op.pad_right - op.kernel_w;
  return room_h >= 0 && room_w >= 0 && room_h / op.stride_h + 1 == out.height && room_w / op.stride_w + 1 == out.width;
}

// Fields that an op makes no use of hold no other value than that.
bool has_window(const OpRecord& op) {
  return op.kernel_h != 1 || op.kernel_w != 1 || op.stride_h != 1 || op.stride_w != 1;
}

bool has_padding(const OpRecord& op) {
  return op.pad_top != 0 || op.pad_left != 0 || op.pad_bottom != 0 || op.pad_right != 0;
}

struct Range {
  uint64_t begin, end;
};

struct OpData {
  Range ranges[3];
};

OpData data_of(const Model& model, const OpRecord& op) {
  const auto weights = static_cast<uint64_t>(weight_count(model, op));
  const auto channels = static_cast<uint64_t>(model.output_of(op).channels);
  return {{{op.weight_offset, op.weight_offset + weights},
           {op.bias_offset, op.bias_offset + 4 * channels},
           {op.scale_offset, op.scale_offset + 4 * channels}}};
}

bool share_bytes(const Range& a, const Range& b) { return a.begin < b.end && b.begin < a.end; }

// int32 accumulators: 255 * 128 * taps must stay below 2^31.
bool accumulator_fits(int64_t taps) { return taps <= 65535; }

// The same of a mean, without weights: 255 * taps.
bool sum_fits(int64_t taps) { return taps <= INT32_MAX / 255; }

}  // namespace

bool geometry_is_valid(const Model& model, const OpRecord& op) {
  const TensorRecord& in = model.input_of(op);
  const TensorRecord& out = model.output_of(op);
  if (!slides(op.kind) && (has_window(op) || (op.kind != OpKind::pad && has_padding(op)))) return false;
  switch (op.kind) {
    case OpKind::conv2d:
      return window_fits(op, in, out) &&
             accumulator_fits(static_cast<int64_t>(op.kernel_h) * op.kernel_w * in.channels);
    // A window of a channel has at most 255 * 255 taps, which fit.
    case OpKind::depthwise_conv2d: return window_fits(op, in, out) && out.channels % in.channels == 0;
    case OpKind::fully_connected: return out.height == 1 && out.width == 1 && accumulator_fits(element_count(in));
    case OpKind::add: return same_shape(in, out) && same_shape(model.input_of(op, 1), out);
    case OpKind::average_pool:
    case OpKind::max_pool: return window_fits(op, in, out) && in.channels == out.channels;
    case OpKind::mean:
      return out.height == 1 && out.width == 1 && in.channels == out.channels &&
             sum_fits(static_cast<int64_t>(in.height) * in.width);
    case OpKind::pad:
      return padding_is_valid(op, largest_side, largest_side) && in.channels == out.channels &&
             in.height + op.pad_top + op.pad_bottom == out.height && in.width + op.pad_left + op.pad_right == out.width;
    case OpKind::reshape: return element_count(in) == element_count(out);
  }
  return false;
}

bool quantization_agrees(const Model& model, const OpRecord& op) {
  switch (op.kind) {
    case OpKind::average_pool:
    case OpKind::max_pool:
    case OpKind::pad:
    case OpKind::reshape: return same_quantization(model.input_of(op), model.output_of(op));
    default: return true;
  }
}

bool data_is_inside(const Model& model, const OpRecord& op) {
  const uint64_t end = model.header().data.count;
  const uint64_t out = static_cast<uint64_t>(model.output_of(op).channels);
  uint64_t weights = out * static_cast<uint64_t>(op.kernel_h) * static_cast<uint64_t>(op.kernel_w);
  if (op.kind == OpKind::fully_connected) weights = out * static_cast<uint64_t>(element_count(model.input_of(op)));
  if (op.kind == OpKind::conv2d) weights *= static_cast<uint64_t>(model.input_of(op).channels);
  if (weights > end) return false;  // also keeps weight_count() inside int32
  const bool aligned = op.weight_offset % 16 == 0 && op.bias_offset % 16 == 0 && op.scale_offset % 16 == 0;
  return aligned && op.weight_offset + weights <= end && op.bias_offset + 4 * out <= end &&
         op.scale_offset + 4 * out <= end;
}

bool data_is_its_own(const Model& model, int32_t index) {
  const OpData own = data_of(model, model.op(index));
  for (int i = 0; i < 3; ++i) {
    for (int k = 0; k < i; ++k) {
      if (share_bytes(own.ranges[i], own.ranges[k])) return false;
    }
  }
  for (int32_t other = 0; other < index; ++other) {
    if (!has_weights(model.op(other))) continue;
    const OpData others = data_of(model, model.op(other));
    for (const Range& a : own.ranges) {
      for (const Range& b : others.ranges) {
        if (share_bytes(a, b)) return false;
      }
    }
  }
  return true;
}

StrengthRange strength_range(FilterKind kind) {
  switch (kind) {
    case FilterKind::none: break;
    case FilterKind::switching_median: return {0, 254};  // levels between a pixel and the median
    case FilterKind::dct_shrinkage:                      // levels of a coefficient
    case FilterKind::sharpening: return {1, 255};        // sixteenths of the details
    case FilterKind::standardization: return {1, 127};   // levels, the deviation of a channel
    case FilterKind::tone_curve: return {-15, 15};       // sixteenths
  }
  return {1, 0};
}

bool filter_is_valid(const StageRecord& frame, const FilterRecord& filter) {
  const StrengthRange range = strength_range(filter.kind);
  if (filter.strength < range.low || filter.strength > range.high) return false;
  if (filter.kind == FilterKind::tone_curve && filter.strength == 0) return false;
  if (filter.kind != FilterKind::dct_shrinkage) return filter.noise == NoiseModel::constant;
  const bool holds_a_block = frame.height >= shrinkage_block && frame.width >= shrinkage_block;
  return holds_a_block && words<NoiseModel>.holds(filter.noise);
}

}  // namespace pmt
