// The states of a model that a learner compares, and the parameters that they are made of.
#pragma once

#include "core/base/arena.hpp"
#include "core/base/linked/reliability.hpp"
#include "core/base/linked/windows.hpp"
#include "core/base/words.hpp"
#include "core/card/state_slots.hpp"
#include "core/image/model.hpp"
#include "core/net/segments.hpp"
#include "core/zo/layer.hpp"

namespace pmt {

// As in the image; channels aligned; channels aligned and head solved; head solved; one of these, and layers trained by
// perturbed forwards.
PMT_WORDS(LearnerState, original, aligned, head, head_alone, trained)
constexpr int32_t learner_states = words<LearnerState>.count;

// Weights that alignment changes, beside biases and weight scales of the channels: none; those of layers with windows;
// and, where images hold noise, those of layers that mix channels, too, by reliability.
PMT_WORDS(AlignedWeights, none, windows, reliability)

struct ChannelParameters {
  int32_t* bias;
  float* weight_scales;
};
template <>
inline constexpr size_t size_on_device<ChannelParameters> = 8;

// Layers that perturbed forwards train together.
struct TrainedLayers {
  const int32_t* ops;  // ascending
  int32_t count;
  const StreamedOps* streams;  // as a plan of the same training has found them; null: they are searched for
  int32_t stream_count;
};

// The sets of layers among which a training may choose. One is trained at a time, in memory that they share.
struct TrainedBlocks {
  const TrainedLayers* blocks;
  int32_t count;

  int32_t most_layers() const;
  bool are_layers_of(const Model& model) const;
};

// Parameters of every state that differs from the image's: filters of the input stage, where there is one; biases and
// weight scales of all layers but the last; weights that alignment changes; heads; the trained layers of a block.
class LearnerParameters {
 public:
  // `heads`: 2 where head and head_alone are both kept, 1 where either takes the same place.
  void take(const Model& model, int32_t heads, const TrainedBlocks& blocks, AlignedWeights aligned, Arena& arena);

  void reset_channels(const Model& model);
  // The filters that channels are aligned behind.
  void set_filters(const FilterChain& filters) { *filters_ = filters; }
  // Null: the image's.
  const FilterChain* filters(LearnerState state) const { return is_aligned(state) ? filters_ : nullptr; }
  void reset_head(const Model& model, LearnerState state);
  // The layers of a block begin with another state, which trained is then based on. The model is in that state.
  void reset_trained(const Model& model, LearnerState base, int32_t block);
  LearnerState base() const { return base_; }
  int32_t block() const { return block_; }
  // Where another one was trained, its parameters are lost.
  void set_base(const Model& model, LearnerState base, int32_t block);

  bool is_aligned(LearnerState state) const;
  bool has_head(LearnerState state) const;

  // Writes the entries of an overlay, one an op, that make the model this state.
  void fill(const Model& model, LearnerState state, WritableLayer* overlay) const;

  WritableLayer channels(int32_t op) const {
    int8_t* const weights = linked::windows && weights_ != nullptr ? weights_[op] : nullptr;
    return {weights, channels_[op].bias, channels_[op].weight_scales};
  }
  const WritableLayer& head(LearnerState state) const { return heads_[head_index(state)]; }
  const LayerStorage* trained() const { return trained_; }

  // What a state is made of: its parts in order, bytes null at the end.
  StatePart part(const Model& model, LearnerState state, int32_t index) const;
  // Of the state that takes most: aligned channels and a head.
  static size_t largest(const Model& model, const TrainedBlocks& blocks, AlignedWeights aligned);
  // Whether all filters and weight scales are inside their bounds, as in a sound image.
  bool is_sound(const Model& model, LearnerState state) const;
  bool has_other_filters(const Model& model, LearnerState state) const;

 private:
  LearnerState based(LearnerState state) const { return state == LearnerState::trained ? base_ : state; }
  int32_t head_index(LearnerState state) const {
    return two_heads_ && based(state) == LearnerState::head_alone ? 1 : 0;
  }
  bool has_sound_filters(const Model& model) const;
  StatePart channel_part(const Model& model, int32_t* index) const;
  StatePart trained_part(const Model& model, int32_t index) const;
  const TrainedLayers& layers() const { return blocks_.blocks[block_]; }
  int32_t layer_count() const { return blocks_.count > 0 ? layers().count : 0; }

  FilterChain* filters_ = nullptr;         // null without an input stage
  ChannelParameters* channels_ = nullptr;  // one an op; null in ops that are not aligned
  int8_t** weights_ = nullptr;             // the same of ops whose weights are aligned; null where none are
  WritableLayer heads_[2] = {};
  bool two_heads_ = false;
  TrainedBlocks blocks_ = {};
  int32_t block_ = 0;
  uint8_t* trained_memory_ = nullptr;
  LayerStorage* trained_ = nullptr;  // one a layer of the block
  LearnerState base_ = LearnerState::original;
};

// The parameters of one state, as slots take them.
struct StoredParameters {
  const LearnerParameters& parameters;
  const Model& model;
  LearnerState state;

  StateParts parts() const { return {this, part}; }

 private:
  static StatePart part(const void* context, int32_t index) {
    const auto& self = *static_cast<const StoredParameters*>(context);
    return self.parameters.part(self.model, self.state, index);
  }
};

// Whether alignment changes an op: it is a layer, and not the last one. Other ops may follow the last layer.
bool is_aligned_op(const Model& model, int32_t op);
// Whether it has windows, which alignment may change as well.
bool is_window_op(const Model& model, int32_t op);
// Whether alignment changes its weights.
bool changes_weights(const Model& model, int32_t op, AlignedWeights aligned);

}  // namespace pmt
