// Folds of a cross-validation, each with its share of every class.
#pragma once

#include "core/learn/head_samples.hpp"

namespace pmt {

// Samples of a class, of which one may be held out.
constexpr int32_t fewest_of_class = 4;
// Folds that choose a head's strength.
constexpr int32_t head_folds = 3;

struct FoldSample {
  int32_t label;  // 0 for a target
  int32_t first;  // the first sample of its unit (copies, or a group): itself, or one before it
};

struct FoldSamples {
  void* context;
  FoldSample (*read)(void* context, int32_t index);
  int32_t count, classes;
};

// Writes the fold of each sample, and returns how many there are: `most`, at most 254, or fewer where there are not as
// many units. The units of a class take turns, one class after another. Those with a sample of a rare class are in
// none, so that they are always trained on: one of fewer than `fewest_of_class`, or of one where all classes are as
// small. `turns` is memory, an entry a class.
int32_t assign_folds(const FoldSamples& samples, int32_t most, int32_t* turns, uint8_t* folds);

// Those of a head; 0 and none for samples that are too few.
int32_t assign_head_folds(const FoldSamples& samples, int32_t* turns, uint8_t* folds);

}  // namespace pmt
