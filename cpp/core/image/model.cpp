#include "core/image/model.hpp"

#include "core/base/arithmetic.hpp"
#include "core/base/crc32.hpp"
#include "core/image/model_checks.hpp"

namespace pmt {

bool has_weights(const OpRecord& op) {
  const OpDefinition* definition = definition_of(op.kind);
  return definition != nullptr && definition->terms != nullptr;
}

int32_t weight_count(const Model& model, const OpRecord& op) {
  if (!has_weights(op)) return 0;
  return model.output_of(op).channels * static_cast<int32_t>(definition_of(op.kind)->terms(model.tensors_of(op)));
}

int64_t mac_count(const Model& model, const OpRecord& op) {
  const TensorRecord& out = model.output_of(op);
  return static_cast<int64_t>(weight_count(model, op)) * out.height * out.width;
}

bool channel_is_dead(float weight_scale) { return weight_scale < dead_channel_scale; }

ChannelWeights channel_weights(const Model& model, const OpRecord& op, int32_t channel) {
  const int32_t channels = model.output_of(op).channels;
  const int32_t count = weight_count(model, op) / channels;
  if (op.kind == OpKind::depthwise_conv2d) return {channel, channels, count};
  return {channel * count, 1, count};
}

int32_t Model::classes() const { return element_count(output()); }

const int8_t* Model::weights(const OpRecord& op) const {
  return parameter(op, &WritableLayer::weights, op.weight_offset);
}

const int32_t* Model::bias(const OpRecord& op) const { return parameter(op, &WritableLayer::bias, op.bias_offset); }

const float* Model::weight_scales(const OpRecord& op) const {
  return parameter(op, &WritableLayer::weight_scales, op.scale_offset);
}

const char* Model::name(uint32_t offset) const {
  return reinterpret_cast<const char*>(image_ + header_->names.offset + offset);
}

const BlockRecord& Model::block(int32_t index) const {
  return reinterpret_cast<const BlockRecord*>(image_ + header_->blocks.offset)[index];
}

int32_t Model::block_layer(const BlockRecord& block, uint32_t index) const {
  const auto* layers = reinterpret_cast<const uint32_t*>(image_ + header_->block_layers.offset);
  return static_cast<int32_t>(layers[block.first + index]);
}

const char* Model::metadata() const { return reinterpret_cast<const char*>(image_ + header_->metadata.offset); }

bool operator==(const FilterChain& a, const FilterChain& b) {
  bool same = a.count == b.count;
  for (int32_t i = 0; same && i < a.count; ++i) {
    const FilterRecord &one = a.records[i], &other = b.records[i];
    same = one.kind == other.kind && one.strength == other.strength && one.noise == other.noise;
  }
  return same;
}

FilterChain Model::filters() const {
  FilterChain chain = {};
  chain.count = filter_count();
  for (int32_t i = 0; i < chain.count; ++i) chain.records[i] = filter(i);
  return chain;
}

int32_t Model::producer(uint32_t tensor) const {
  for (int32_t i = 0; i < op_count(); ++i) {
    if (ops_[i].output == tensor) return i;
  }
  return -1;
}

int32_t Model::last_use(uint32_t tensor) const {
  if (tensor == header_->output_tensor) return op_count();
  for (int32_t i = op_count() - 1; i >= 0; --i) {
    if (ops_[i].input[0] == tensor || ops_[i].input[1] == tensor) return i;
  }
  return -1;
}

Status Model::open(const uint8_t* image, size_t bytes) {
  if (reinterpret_cast<uintptr_t>(image) % image_alignment != 0) return {Code::image_alignment};
  if (image == nullptr || bytes < sizeof(ImageHeader)) return {Code::image_too_short};
  const auto* header = reinterpret_cast<const ImageHeader*>(image);
  for (int i = 0; i < 4; ++i) {
    if (header->magic[i] != image_magic[i]) return {Code::image_magic};
  }
  const bool has_stage = header->version == image_version_with_stage;
  if (header->version != image_version && !has_stage) return {Code::image_version};
  if (header->image_bytes != bytes) return {Code::image_too_short};
  if (bytes > largest_image) return {Code::image_layout};
  if (crc32(image + 16, bytes - 16) != header->crc32) return {Code::image_checksum};
  if (has_stage != (header->stage.count > 0)) return {Code::image_version};
  if (has_stage && !linked::input_stage) return {Code::not_linked};
  image_ = image;
  header_ = header;
  overlay(nullptr);
  PMT_RETURN_IF_ERROR(check_sections());
  tensors_ = reinterpret_cast<const TensorRecord*>(image + header->tensors.offset);
  ops_ = reinterpret_cast<const OpRecord*>(image + header->ops.offset);
  PMT_RETURN_IF_ERROR(check_tensors());
  PMT_RETURN_IF_ERROR(check_order());
  for (int32_t i = 0; i < op_count(); ++i) PMT_RETURN_IF_ERROR(check_op(i));
  PMT_RETURN_IF_ERROR(check_blocks());
  return check_stage();
}

Status Model::check_sections() const {
  const Section sections[] = {header_->tensors, header_->ops,      header_->blocks, header_->block_layers,
                              header_->names,   header_->metadata, header_->data,   header_->stage};
  const uint32_t record_bytes[] = {sizeof(TensorRecord), sizeof(OpRecord), sizeof(BlockRecord), 4, 1, 1, 1, 1};
  const int count = header_->stage.count > 0 ? 8 : 7;
  for (int i = 0; i < count; ++i) {
    const uint64_t end = sections[i].offset + static_cast<uint64_t>(sections[i].count) * record_bytes[i];
    const bool aligned = sections[i].offset % image_alignment == 0;
    if (!aligned || sections[i].offset < sizeof(ImageHeader) || end > header_->image_bytes) return {Code::image_layout};
    // Weights are written to: no section may share a byte with another.
    for (int k = 0; k < i; ++k) {
      const uint64_t other_end = sections[k].offset + static_cast<uint64_t>(sections[k].count) * record_bytes[k];
      if (sections[i].offset < other_end && sections[k].offset < end) return {Code::image_layout};
    }
  }
  if (header_->tensors.count == 0 || header_->tensors.count > most_tensors) return {Code::image_layout};
  if (header_->ops.count == 0 || header_->ops.count > most_ops) return {Code::image_layout};
  if (header_->names.count == 0 || *(name(header_->names.count - 1)) != 0) return {Code::name_range};
  for (int i = 0; i < 4; ++i) {
    if (!is_finite(header_->input_mean[i]) || !is_finite(header_->input_std[i]) || header_->input_std[i] <= 0.0f) {
      return {Code::tensor_quantization};
    }
  }
  return {};
}

bool Model::name_is_valid(uint32_t offset) const { return offset < header_->names.count; }

Status Model::check_tensors() const {
  int64_t elements = 0;
  for (int32_t i = 0; i < tensor_count(); ++i) {
    const TensorRecord& t = tensors_[i];
    const bool positive = t.height > 0 && t.width > 0 && t.channels > 0;
    const bool too_large = t.height > largest_side || t.width > largest_side || t.channels > most_channels;
    if (!positive || too_large) return {Code::tensor_shape, i};
    elements += static_cast<int64_t>(t.height) * t.width * t.channels + image_alignment;
    if (elements > most_activations) return {Code::tensor_shape, i};
    if (!(t.scale >= smallest_tensor_scale && t.scale <= largest_scale)) return {Code::tensor_quantization, i};
    if (t.zero_point < -128 || t.zero_point > 127) return {Code::tensor_quantization, i};
    if (!name_is_valid(t.name)) return {Code::name_range, i};
  }
  const auto count = header_->tensors.count;
  if (header_->input_tensor >= count || header_->output_tensor >= count) return {Code::op_tensor};
  return {};
}

// Every tensor is the input of the net or produced once, before it is read.
Status Model::check_order() const {
  for (int32_t i = 0; i < op_count(); ++i) {
    const OpRecord& op = ops_[i];
    if (op.output >= header_->tensors.count || op.output == header_->input_tensor) return {Code::op_tensor, i};
    if (producer(op.output) != i) return {Code::op_tensor, i};
    const OpDefinition* definition = definition_of(op.kind);
    if (definition == nullptr) return {Code::op_kind, i};
    for (int k = 0; k < 2; ++k) {
      if (k >= definition->inputs) {
        if (op.input[k] != no_tensor) return {Code::op_tensor, i};
        continue;
      }
      if (op.input[k] >= header_->tensors.count) return {Code::op_tensor, i};
      if (op.input[k] == header_->input_tensor) continue;
      const int32_t made_by = producer(op.input[k]);
      if (made_by < 0 || made_by >= i) return {Code::op_tensor, i};
    }
  }
  if (producer(header_->output_tensor) != op_count() - 1) return {Code::op_tensor, op_count() - 1};
  return {};
}

Status Model::check_op(int32_t index) const {
  const OpRecord& op = ops_[index];
  if (!name_is_valid(op.name)) return {Code::name_range, index};
  if (op.clamp_min < -128 || op.clamp_max > 127 || op.clamp_min >= op.clamp_max) return {Code::op_clamp, index};
  if (!geometry_is_valid(*this, op)) return {Code::op_geometry, index};
  if (!quantization_agrees(*this, op)) return {Code::op_quantization, index};
  if (!has_weights(op)) return {};
  if (!data_is_inside(*this, op) || !data_is_its_own(*this, index)) return {Code::op_data, index};
  const float* scales = weight_scales(op);
  for (int32_t c = 0; c < output_of(op).channels; ++c) {
    const bool inside = scales[c] >= smallest_weight_scale && scales[c] <= largest_scale;
    if (!inside) return {Code::op_quantization, index};
  }
  return {};
}

Status Model::check_stage() const {
  if (stage() == nullptr) return {};
  const uint32_t bytes = header_->stage.count;
  if (bytes < sizeof(StageRecord) || stage()->filters > most_filters) return {Code::input_stage};
  const StageRecord& frame = *stage();
  const uint64_t channels = static_cast<uint64_t>(input().channels);
  const uint64_t expected = sizeof(StageRecord) + frame.filters * sizeof(FilterRecord) + channels * pixel_values;
  const bool fits = frame.height >= 1 && frame.width >= 1 && frame.height <= largest_side &&
                    frame.width <= largest_side && input().channels <= most_stage_channels;
  if (bytes != expected || !fits) return {Code::input_stage};
  for (int32_t i = 0; i < filter_count(); ++i) {
    if (!filter_is_valid(frame, filter(i))) return {Code::input_stage, i};
  }
  return {};
}

Status Model::check_blocks() const {
  for (int32_t b = 0; b < block_count(); ++b) {
    const BlockRecord& one = block(b);
    if (!name_is_valid(one.name)) return {Code::name_range, b};
    if (static_cast<uint64_t>(one.first) + one.count > header_->block_layers.count) return {Code::block_layer, b};
    for (uint32_t k = 0; k < one.count; ++k) {
      const int32_t layer = block_layer(one, k);
      const bool ascending = k == 0 || layer > block_layer(one, k - 1);
      const bool exists = layer >= 0 && layer < op_count();
      if (!exists || !ascending || !has_weights(op(layer))) return {Code::block_layer, b};
    }
  }
  return {};
}

}  // namespace pmt
