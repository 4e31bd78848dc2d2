#include "core/zo/sparsity.hpp"

namespace pmt {
namespace {

uint32_t draw_of(const TrainerOptions& options, uint32_t step) {
  return step / static_cast<uint32_t>(options.mask_interval);
}

}  // namespace

Permutation::Permutation(const StreamId& id, int32_t count)
    : count_(static_cast<uint32_t>(count)),
      mask_(1),
      shift_(1),
      multipliers_(random_block(id, 0)),
      offsets_(random_block(id, 1)) {
  while (mask_ + 1 < count_) mask_ = 2 * mask_ + 1;
  while ((mask_ >> (2 * shift_)) != 0) ++shift_;
}

// Every step of a round can be undone modulo a power of two: the whole is a bijection there.
uint32_t Permutation::mixed(uint32_t value) const {
  for (int round = 0; round < rounds; ++round) {
    value = (value * (multipliers_.word[round] | 1u) + offsets_.word[round]) & mask_;
    value ^= value >> shift_;
  }
  return value;
}

// Walks along the larger set's cycle until it is back inside: a bijection of the smaller one.
int32_t Permutation::at(int32_t index) const {
  uint32_t value = mixed(static_cast<uint32_t>(index));
  while (value >= count_) value = mixed(value);
  return static_cast<int32_t>(value);
}

int32_t active_weights(const TrainerOptions& options, const Layer& layer) {
  const auto left_out = static_cast<int32_t>(options.sparsity * static_cast<float>(layer.weight_count) + 0.5f);
  if (options.train_weights == 0) return 0;
  const int32_t active = layer.weight_count - left_out;
  return active < 1 ? 1 : active;
}

int32_t coordinate_count(const TrainerOptions& options, const Layer& layer) {
  switch (layer.estimator) {
    case Estimator::node_perturbation:
    case Estimator::pooled_perturbation: return node_columns(layer);
    case Estimator::weight_perturbation:
      return active_weights(options, layer) + (options.train_bias != 0 ? layer.channels : 0);
    default: return 0;
  }
}

Permutation weight_order(const TrainerOptions& options, const Layer& layer, uint32_t step) {
  const StreamId id = {options.seed, draw_of(options, step), static_cast<uint32_t>(layer.op), 0, 0, Purpose::mask};
  return {id, layer.weight_count};
}

int64_t Masks::bytes(const TrainerOptions& options, const Layer* layers, int32_t layer_count) {
  if (options.sparsity == 0.0f) return 0;
  int64_t sum = 0, largest = 0;
  for (int32_t i = 0; i < layer_count; ++i) {
    sum += layers[i].weight_count;
    if (layers[i].weight_count > largest) largest = layers[i].weight_count;
  }
  return options.scope == Scope::model_wise ? sum : largest;
}

int32_t Masks::keys(const TrainerOptions& options, int32_t layer_count) {
  if (options.sparsity == 0.0f) return 0;
  return options.scope == Scope::model_wise ? layer_count : 1;
}

Masks::Masks(const Layer* layers, int32_t key_count, int8_t* masks, uint64_t* keys)
    : layers_(layers), masks_(masks), keys_(keys) {
  for (int32_t i = 0; i < key_count; ++i) keys_[i] = UINT64_MAX;
}

const int8_t* Masks::of(const TrainerOptions& options, const Layer& layer, uint32_t step) const {
  if (options.sparsity == 0.0f) return nullptr;
  int8_t* mask = masks_;
  uint64_t* key = keys_;
  if (options.scope == Scope::model_wise) {
    for (const Layer* before = layers_; before->op != layer.op; ++before, ++key) mask += before->weight_count;
  }
  const uint64_t wanted = uint64_t{static_cast<uint32_t>(layer.op)} << 32 | draw_of(options, step);
  if (*key == wanted) return mask;
  *key = wanted;
  __builtin_memset(mask, 0, static_cast<uint32_t>(layer.weight_count));
  const Permutation order = weight_order(options, layer, step);
  const int32_t active = active_weights(options, layer);
  for (int32_t i = 0; i < active; ++i) mask[order.at(i)] = -1;
  return mask;
}

void apply_mask(const int8_t* mask, int32_t count, int8_t* signs) {
  for (int32_t i = 0; i < count; ++i) signs[i] = static_cast<int8_t>(signs[i] & mask[i]);
}

}  // namespace pmt
