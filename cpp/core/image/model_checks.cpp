#include "core/image/model_checks.hpp"

namespace pmt {
namespace {

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

// int32 accumulators: 255 * 128 * terms must stay below 2^31.
bool accumulator_fits(int64_t terms) { return terms <= 65535; }

}  // namespace

bool geometry_is_valid(const Model& model, const OpRecord& op) {
  const OpDefinition& definition = *definition_of(op.kind);
  if (!definition.has_window && (has_window(op) || (op.kind != OpKind::pad && has_padding(op)))) return false;
  const OpTensors tensors = model.tensors_of(op);
  if (!definition.geometry_is_valid(tensors)) return false;
  return definition.terms == nullptr || accumulator_fits(definition.terms(tensors));
}

bool quantization_agrees(const Model& model, const OpRecord& op) {
  const bool keeps = definition_of(op.kind)->keeps_quantization;
  return !keeps || have_same_quantization(model.input_of(op), model.output_of(op));
}

bool data_is_inside(const Model& model, const OpRecord& op) {
  const uint64_t end = model.header().data.count;
  const auto out = static_cast<uint64_t>(model.output_of(op).channels);
  const uint64_t weights = out * static_cast<uint64_t>(definition_of(op.kind)->terms(model.tensors_of(op)));
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
