// Random gradient sparsity: the share of a layer's weights that a step neither perturbs nor changes.
// Which weights are active is a function of (seed, draw, layer); every layer has a fixed number.
#pragma once

#include "core/base/random.hpp"
#include "core/zo/layer.hpp"

namespace pmt {

// A random bijection of 0 .. count-1 on itself.
class Permutation {
 public:
  Permutation(const StreamId& id, int32_t count);
  int32_t at(int32_t index) const;

 private:
  uint32_t mixed(uint32_t value) const;

  static constexpr int32_t rounds = 4;
  uint32_t count_, mask_;
  int32_t shift_;
  Random128 multipliers_, offsets_;
};

// Active weights of a layer, at least 1; none where biases train alone.
int32_t active_weights(const TrainerOptions& options, const Layer& layer);

// Coordinates that a step moves one by one: active weights and, where they train, biases; or nodes.
int32_t coordinate_count(const TrainerOptions& options, const Layer& layer);

// The first active_weights() of it are the active ones.
Permutation weight_order(const TrainerOptions& options, const Layer& layer, uint32_t step);

// A worker's copies of masks, made again when the draw or the layer changes. Layer-wise, layers take
// turns in one copy; model-wise each has its own.
class Masks {
 public:
  // Bytes of all masks and number of keys, both 0 without sparsity.
  static int64_t bytes(const TrainerOptions& options, const Layer* layers, int32_t layer_count);
  static int32_t keys(const TrainerOptions& options, int32_t layer_count);

  Masks() = default;
  // `masks` and `keys` have the sizes above.
  Masks(const Layer* layers, int32_t key_count, int8_t* masks, uint64_t* keys);

  // -1 (all bits) for active weights and 0 for others; null without sparsity.
  const int8_t* of(const TrainerOptions& options, const Layer& layer, uint32_t step) const;

 private:
  const Layer* layers_ = nullptr;
  int8_t* masks_ = nullptr;
  uint64_t* keys_ = nullptr;
};

// signs[i] = 0 where mask[i] is.
void apply_mask(const int8_t* mask, int32_t count, int8_t* signs);

}  // namespace pmt
