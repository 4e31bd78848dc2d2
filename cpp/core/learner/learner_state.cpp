#include "core/learner/learner_state.hpp"

#include "core/image/model_checks.hpp"
#include "core/train/device_setup.hpp"

namespace pmt {
namespace {

// Weights, biases and weight scales of a head, or the latter two of a layer's channels.
constexpr int32_t head_parts = 3, channel_parts = 2;

size_t channel_bytes(const Model& model, int32_t op) {
  return sizeof(int32_t) * static_cast<size_t>(model.output_of(model.op(op)).channels);
}

}  // namespace

bool LearnerParameters::is_aligned(LearnerState state) const {
  return based(state) == LearnerState::aligned || based(state) == LearnerState::head;
}

bool LearnerParameters::has_head(LearnerState state) const {
  return based(state) == LearnerState::head || based(state) == LearnerState::head_alone;
}

void LearnerParameters::take(const Model& model, int32_t heads, const TrainedLayers& layers, Arena& arena) {
  two_heads_ = heads > 1;
  layers_ = layers;
  filters_ = model.stage() == nullptr ? nullptr : arena.take<FilterChain>(MemoryPart::lists, 1);
  channels_ = arena.take<ChannelParameters>(MemoryPart::lists, model.op_count());
  for (int32_t i = 0; i < model.op_count() - 1; ++i) {
    const int32_t channels = is_aligned_op(model, i) ? model.output_of(model.op(i)).channels : 0;
    const ChannelParameters taken = {arena.take<int32_t>(MemoryPart::biases, channels),
                                     arena.take<float>(MemoryPart::biases, channels)};
    if (arena.fits()) channels_[i] = channels > 0 ? taken : ChannelParameters{nullptr, nullptr};
  }
  const OpRecord& last = model.op(model.op_count() - 1);
  for (int32_t i = 0; i < heads; ++i) {
    heads_[i] = {arena.take<int8_t>(MemoryPart::weights, weight_count(model, last)),
                 arena.take<int32_t>(MemoryPart::biases, model.classes()),
                 arena.take<float>(MemoryPart::biases, model.classes())};
  }
  trained_ = arena.take<LayerStorage>(MemoryPart::lists, layers.count);
  for (int32_t i = 0; i < layers.count; ++i) {
    const OpRecord& op = model.op(layers.ops[i]);
    const LayerStorage taken = {arena.take<int8_t>(MemoryPart::weights, weight_count(model, op)),
                                arena.take<int32_t>(MemoryPart::biases, model.output_of(op).channels)};
    if (arena.fits()) trained_[i] = taken;
  }
}

void LearnerParameters::reset_channels(const Model& model) {
  if (filters_ != nullptr) *filters_ = model.filters();
  for (int32_t i = 0; i < model.op_count() - 1; ++i) {
    if (!is_aligned_op(model, i)) continue;
    __builtin_memcpy(channels_[i].bias, model.bias(model.op(i)), channel_bytes(model, i));
    __builtin_memcpy(channels_[i].weight_scales, model.weight_scales(model.op(i)), channel_bytes(model, i));
  }
}

void LearnerParameters::reset_head(const Model& model, LearnerState state) {
  const int32_t last = model.op_count() - 1;
  const OpRecord& op = model.op(last);
  const WritableLayer& layer = head(state);
  copy_parameters(model, op, {layer.weights, layer.bias});
  __builtin_memcpy(layer.weight_scales, model.weight_scales(op), channel_bytes(model, last));
}

void LearnerParameters::reset_trained(const Model& model, LearnerState base) {
  base_ = base;
  for (int32_t i = 0; i < layers_.count; ++i) {
    copy_parameters(model, model.op(layers_.ops[i]), trained_[i]);
  }
}

void LearnerParameters::fill(const Model& model, LearnerState state, WritableLayer* overlay) const {
  for (int32_t i = 0; i < model.op_count(); ++i) {
    overlay[i] = {};
    if (is_aligned(state) && is_aligned_op(model, i)) overlay[i] = channels(i);
  }
  if (has_head(state)) overlay[model.op_count() - 1] = head(state);
  for (int32_t i = 0; state == LearnerState::trained && i < layers_.count; ++i) {
    overlay[layers_.ops[i]].weights = trained_[i].weights;
    overlay[layers_.ops[i]].bias = trained_[i].bias;
  }
}

// Weights, then biases, layer by layer.
StatePart LearnerParameters::trained_part(const Model& model, int32_t index) const {
  if (index >= 2 * layers_.count) return {nullptr, 0};
  const int32_t op = layers_.ops[index / 2];
  const LayerStorage& layer = trained_[index / 2];
  if (index % 2 == 1) return {reinterpret_cast<uint8_t*>(layer.bias), channel_bytes(model, op)};
  return {reinterpret_cast<uint8_t*>(layer.weights), static_cast<size_t>(weight_count(model, model.op(op)))};
}

// Filters, then biases and weight scales, layer by layer; none, and the index less all of them, behind these.
StatePart LearnerParameters::channel_part(const Model& model, int32_t* index) const {
  if (filters_ != nullptr) {
    if (*index == 0) return {reinterpret_cast<uint8_t*>(filters_), sizeof *filters_};
    --*index;
  }
  for (int32_t i = 0; i < model.op_count() - 1; ++i) {
    if (!is_aligned_op(model, i)) continue;
    if (*index < channel_parts) {
      void* from = *index == 0 ? static_cast<void*>(channels_[i].bias) : channels_[i].weight_scales;
      return {static_cast<uint8_t*>(from), channel_bytes(model, i)};
    }
    *index -= channel_parts;
  }
  return {nullptr, 0};
}

StatePart LearnerParameters::part(const Model& model, LearnerState state, int32_t index) const {
  const StatePart channels = is_aligned(state) ? channel_part(model, &index) : StatePart{nullptr, 0};
  if (channels.bytes != nullptr) return channels;
  if (!has_head(state) || index >= head_parts) {
    return state == LearnerState::trained ? trained_part(model, has_head(state) ? index - head_parts : index)
                                          : StatePart{nullptr, 0};
  }
  const int32_t last = model.op_count() - 1;
  const WritableLayer& layer = head(state);
  if (index == 0) {
    return {reinterpret_cast<uint8_t*>(layer.weights), static_cast<size_t>(weight_count(model, model.op(last)))};
  }
  void* from = index == 1 ? static_cast<void*>(layer.bias) : layer.weight_scales;
  return {static_cast<uint8_t*>(from), channel_bytes(model, last)};
}

size_t LearnerParameters::largest(const Model& model, const TrainedLayers& layers) {
  const int32_t last = model.op_count() - 1;
  size_t sum = static_cast<size_t>(weight_count(model, model.op(last)));
  if (model.stage() != nullptr) sum += sizeof(FilterChain);
  for (int32_t i = 0; i <= last; ++i) {
    if (i == last || is_aligned_op(model, i)) sum += channel_parts * channel_bytes(model, i);
  }
  for (int32_t i = 0; i < layers.count; ++i) {
    sum += static_cast<size_t>(weight_count(model, model.op(layers.ops[i]))) + channel_bytes(model, layers.ops[i]);
  }
  return sum;
}

bool LearnerParameters::has_other_filters(const Model& model, LearnerState state) const {
  const FilterChain* chain = filters(state);
  return chain != nullptr && !(*chain == model.original().filters());
}

bool LearnerParameters::has_sound_filters(const Model& model) const {
  if (filters_ == nullptr) return true;
  bool sound = filters_->count >= 0 && filters_->count <= static_cast<int32_t>(most_filters);
  for (int32_t i = 0; sound && i < filters_->count; ++i) sound = filter_is_valid(*model.stage(), filters_->records[i]);
  return sound;
}

bool LearnerParameters::is_sound(const Model& model, LearnerState state) const {
  if (is_aligned(state) && !has_sound_filters(model)) return false;
  const auto sound = [](const float* scales, int32_t count) {
    for (int32_t i = 0; i < count; ++i) {
      if (!(scales[i] >= smallest_weight_scale && scales[i] <= largest_scale)) return false;
    }
    return true;
  };
  for (int32_t i = 0; is_aligned(state) && i < model.op_count() - 1; ++i) {
    if (is_aligned_op(model, i) && !sound(channels_[i].weight_scales, model.output_of(model.op(i)).channels)) {
      return false;
    }
  }
  return !has_head(state) || sound(head(state).weight_scales, model.classes());
}

bool is_aligned_op(const Model& model, int32_t op) {
  int32_t last = model.op_count() - 1;
  while (last > 0 && !has_weights(model.op(last))) --last;
  return op < last && has_weights(model.op(op));
}

}  // namespace pmt
