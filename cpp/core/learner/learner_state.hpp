// The states of a model that a learner compares, and the parameters that they are made of.
#pragma once

#include "core/base/arena.hpp"
#include "core/base/words.hpp"
#include "core/image/model.hpp"

namespace pmt {

// As in the image; channels aligned; channels aligned and head solved; head solved.
PMT_WORDS(LearnerState, original, aligned, head, head_alone)
constexpr int32_t learner_states = words<LearnerState>.count;

constexpr bool is_aligned(LearnerState state) { return state == LearnerState::aligned || state == LearnerState::head; }
constexpr bool has_head(LearnerState state) { return state == LearnerState::head || state == LearnerState::head_alone; }

// One piece of a state's parameters in memory.
struct StatePart {
  uint8_t* bytes;
  size_t count;
};

struct ChannelParameters {
  int32_t* bias;
  float* weight_scales;
};
template <>
inline constexpr size_t size_on_device<ChannelParameters> = 8;

// Biases and weight scales of all layers but the last, and heads: of every state that differs from the image's.
class LearnerParameters {
 public:
  // `heads`: 2 where head and head_alone are both kept, 1 where either takes the same place.
  void take(const Model& model, int32_t heads, Arena& arena);

  void reset_channels(const Model& model);
  void reset_head(const Model& model, LearnerState state);

  // Writes the entries of an overlay, one an op, that make the model this state.
  void fill(const Model& model, LearnerState state, WritableLayer* overlay) const;

  WritableLayer channels(int32_t op) const { return {nullptr, channels_[op].bias, channels_[op].weight_scales}; }
  const WritableLayer& head(LearnerState state) const { return heads_[head_index(state)]; }

  // What a state is made of: its parts in order, bytes null at the end.
  StatePart part(const Model& model, LearnerState state, int32_t index) const;
  size_t bytes(const Model& model, LearnerState state) const;
  // Of the state that takes most: aligned channels and a head.
  static size_t largest(const Model& model);
  // Whether all weight scales are inside their bounds, as in a sound image.
  bool is_sound(const Model& model, LearnerState state) const;

 private:
  int32_t head_index(LearnerState state) const { return two_heads_ && state == LearnerState::head_alone ? 1 : 0; }

  ChannelParameters* channels_ = nullptr;  // one an op; null in ops that are not aligned
  WritableLayer heads_[2] = {};
  bool two_heads_ = false;
};

// Whether alignment changes an op: it is a layer, and not the last.
inline bool is_aligned_op(const Model& model, int32_t op) {
  return op < model.op_count() - 1 && has_weights(model.op(op));
}

}  // namespace pmt
