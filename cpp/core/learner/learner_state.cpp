#include "core/learner/learner_state.hpp"

#include "core/align/channel_reliability.hpp"
#include "core/align/window_statistics.hpp"
#include "core/image/model_checks.hpp"
#include "core/train/device_setup.hpp"

namespace pmt {
namespace {

constexpr int32_t layer_parts = 3;

size_t channel_bytes(const Model& model, int32_t op) {
  return sizeof(int32_t) * static_cast<size_t>(model.output_of(model.op(op)).channels);
}

size_t weight_bytes(const Model& model, int32_t op) { return static_cast<size_t>(weight_count(model, model.op(op))); }

// Weights, where they are kept, too.
void copy_layer(const Model& model, int32_t op, const WritableLayer& to) {
  const OpRecord& record = model.op(op);
  if (to.weights != nullptr) __builtin_memcpy(to.weights, model.weights(record), weight_bytes(model, op));
  __builtin_memcpy(to.bias, model.bias(record), channel_bytes(model, op));
  __builtin_memcpy(to.weight_scales, model.weight_scales(record), channel_bytes(model, op));
}

// Weights, where they are kept, biases and weight scales: none, and the index less all of them, behind these.
StatePart layer_part(const Model& model, int32_t op, const WritableLayer& layer, int32_t* index) {
  *index += layer.weights == nullptr ? 1 : 0;
  if (*index == 0) return {reinterpret_cast<uint8_t*>(layer.weights), weight_bytes(model, op)};
  if (*index == 1) return {reinterpret_cast<uint8_t*>(layer.bias), channel_bytes(model, op)};
  if (*index == 2) return {reinterpret_cast<uint8_t*>(layer.weight_scales), channel_bytes(model, op)};
  *index -= layer_parts;
  return {nullptr, 0};
}

void take_trained(const Model& model, const TrainedLayers& layers, Arena& arena, LayerStorage* storage) {
  for (int32_t i = 0; i < layers.count; ++i) {
    const OpRecord& op = model.op(layers.ops[i]);
    const LayerStorage taken = {arena.take<int8_t>(MemoryPart::weights, weight_count(model, op)),
                                arena.take<int32_t>(MemoryPart::biases, model.output_of(op).channels)};
    if (storage != nullptr) storage[i] = taken;
  }
}

}  // namespace

int32_t TrainedBlocks::most_layers() const {
  int32_t most = 0;
  for (int32_t i = 0; i < count; ++i) most = blocks[i].count > most ? blocks[i].count : most;
  return most;
}

bool TrainedBlocks::are_layers_of(const Model& model) const {
  for (int32_t i = 0; i < count; ++i) {
    for (int32_t k = 0; k < blocks[i].count; ++k) {
      const int32_t op = blocks[i].ops[k];
      if (op < 0 || op >= model.op_count() || !has_weights(model.op(op))) return false;
    }
  }
  return true;
}

bool LearnerParameters::is_aligned(LearnerState state) const {
  return based(state) == LearnerState::aligned || based(state) == LearnerState::head;
}

bool LearnerParameters::has_head(LearnerState state) const {
  return based(state) == LearnerState::head || based(state) == LearnerState::head_alone;
}

// Cold, for size: it runs once.
__attribute__((cold)) void LearnerParameters::take(const Model& model, int32_t heads, const TrainedBlocks& blocks,
                                                   AlignedWeights aligned, Arena& arena) {
  two_heads_ = heads > 1;
  blocks_ = blocks;
  block_ = 0;
  filters_ = model.stage() == nullptr ? nullptr : arena.take<FilterChain>(MemoryPart::lists, 1);
  channels_ = arena.take<ChannelParameters>(MemoryPart::lists, model.op_count());
  for (int32_t i = 0; i < model.op_count() - 1; ++i) {
    const int32_t channels = is_aligned_op(model, i) ? model.output_of(model.op(i)).channels : 0;
    const ChannelParameters taken = {arena.take<int32_t>(MemoryPart::biases, channels),
                                     arena.take<float>(MemoryPart::biases, channels)};
    if (arena.fits()) channels_[i] = channels > 0 ? taken : ChannelParameters{nullptr, nullptr};
  }
  const bool aligns = aligned != AlignedWeights::none;
  weights_ = aligns ? arena.take<int8_t*>(MemoryPart::lists, model.op_count()) : nullptr;
  for (int32_t i = 0; aligns && i < model.op_count(); ++i) {
    const int32_t weights = changes_weights(model, i, aligned) ? weight_count(model, model.op(i)) : 0;
    int8_t* const taken = arena.take<int8_t>(MemoryPart::weights, weights);
    if (arena.fits()) weights_[i] = weights > 0 ? taken : nullptr;
  }
  const OpRecord& last = model.op(model.op_count() - 1);
  for (int32_t i = 0; i < heads; ++i) {
    heads_[i] = {arena.take<int8_t>(MemoryPart::weights, weight_count(model, last)),
                 arena.take<int32_t>(MemoryPart::biases, model.classes()),
                 arena.take<float>(MemoryPart::biases, model.classes())};
  }
  trained_ = arena.take<LayerStorage>(MemoryPart::lists, blocks.most_layers());
  Arena largest;
  for (int32_t i = 0; i < blocks.count; ++i) {
    Arena block;
    take_trained(model, blocks.blocks[i], block, nullptr);
    if (block.used() > largest.used()) largest = block;
  }
  trained_memory_ = arena.take<uint8_t>(MemoryPart::weights, static_cast<int64_t>(largest.used()));
  if (arena.fits()) set_base(model, LearnerState::original, 0);
}

void LearnerParameters::set_base(const Model& model, LearnerState base, int32_t block) {
  base_ = base;
  block_ = block;
  if (blocks_.count == 0) return;
  Arena arena(trained_memory_, SIZE_MAX);
  take_trained(model, layers(), arena, trained_);
}

void LearnerParameters::reset_channels(const Model& model) {
  if (filters_ != nullptr) *filters_ = model.filters();
  for (int32_t i = 0; i < model.op_count() - 1; ++i) {
    if (is_aligned_op(model, i)) copy_layer(model, i, channels(i));
  }
}

void LearnerParameters::reset_head(const Model& model, LearnerState state) {
  const int32_t last = model.op_count() - 1;
  copy_layer(model, last, head(state));
}

void LearnerParameters::reset_trained(const Model& model, LearnerState base, int32_t block) {
  set_base(model, base, block);
  for (int32_t i = 0; i < layer_count(); ++i) {
    copy_parameters(model, model.op(layers().ops[i]), trained_[i]);
  }
}

void LearnerParameters::fill(const Model& model, LearnerState state, WritableLayer* overlay) const {
  for (int32_t i = 0; i < model.op_count(); ++i) {
    overlay[i] = {};
    if (is_aligned(state) && is_aligned_op(model, i)) overlay[i] = channels(i);
  }
  if (has_head(state)) overlay[model.op_count() - 1] = head(state);
  for (int32_t i = 0; state == LearnerState::trained && i < layer_count(); ++i) {
    overlay[layers().ops[i]].weights = trained_[i].weights;
    overlay[layers().ops[i]].bias = trained_[i].bias;
  }
}

// Weights, then biases, layer by layer.
StatePart LearnerParameters::trained_part(const Model& model, int32_t index) const {
  if (index >= 2 * layer_count()) return {nullptr, 0};
  const int32_t op = layers().ops[index / 2];
  const LayerStorage& layer = trained_[index / 2];
  if (index % 2 == 1) return {reinterpret_cast<uint8_t*>(layer.bias), channel_bytes(model, op)};
  return {reinterpret_cast<uint8_t*>(layer.weights), weight_bytes(model, op)};
}

// Filters, then weights, biases and weight scales, layer by layer; none, and the index less all of them, behind these.
StatePart LearnerParameters::channel_part(const Model& model, int32_t* index) const {
  if (filters_ != nullptr) {
    if (*index == 0) return {reinterpret_cast<uint8_t*>(filters_), sizeof *filters_};
    --*index;
  }
  for (int32_t i = 0; i < model.op_count() - 1; ++i) {
    if (!is_aligned_op(model, i)) continue;
    const StatePart part = layer_part(model, i, channels(i), index);
    if (part.bytes != nullptr) return part;
  }
  return {nullptr, 0};
}

StatePart LearnerParameters::part(const Model& model, LearnerState state, int32_t index) const {
  StatePart found = {nullptr, 0};
  if (is_aligned(state)) found = channel_part(model, &index);
  if (found.bytes == nullptr && has_head(state)) {
    found = layer_part(model, model.op_count() - 1, head(state), &index);
  }
  return found.bytes == nullptr && state == LearnerState::trained ? trained_part(model, index) : found;
}

size_t LearnerParameters::largest(const Model& model, const TrainedBlocks& blocks, AlignedWeights aligned) {
  const int32_t last = model.op_count() - 1;
  size_t sum = model.stage() != nullptr ? sizeof(FilterChain) : 0;
  for (int32_t i = 0; i <= last; ++i) {
    if (i == last || changes_weights(model, i, aligned)) sum += weight_bytes(model, i);
    if (i == last || is_aligned_op(model, i)) sum += 2 * channel_bytes(model, i);
  }
  size_t most = 0;
  for (int32_t i = 0; i < blocks.count; ++i) {
    size_t trained = 0;
    for (int32_t k = 0; k < blocks.blocks[i].count; ++k) {
      trained += weight_bytes(model, blocks.blocks[i].ops[k]) + channel_bytes(model, blocks.blocks[i].ops[k]);
    }
    most = trained > most ? trained : most;
  }
  return sum + most;
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

bool is_window_op(const Model& model, int32_t op) {
  return linked::windows && is_aligned_op(model, op) && window_groups(model, op).count > 0;
}

bool changes_weights(const Model& model, int32_t op, AlignedWeights aligned) {
  if (!linked::windows || aligned == AlignedWeights::none) return false;
  const bool mixes = linked::reliability && aligned == AlignedWeights::reliability && mixes_channels(model, op);
  return is_window_op(model, op) || (mixes && is_aligned_op(model, op));
}

}  // namespace pmt
