// Folds of a cross-validation, each with about its share of every class.
#pragma once

#include "core/learn/head_samples.hpp"

namespace pmt {

// Samples of a class, of which one may be held out.
constexpr int32_t fewest_of_class = 4;
// Folds that choose a head's strength, and at most.
constexpr int32_t head_folds = 3, most_folds = 16;

struct FoldSample {
  int32_t label;  // 0 for targets
  int32_t first;  // the first sample of its unit (copies, or a group): itself, or one before it
};

struct FoldSamples {
  void* context;
  FoldSample (*read)(void* context, int32_t index);
  int32_t count, classes;
};

// Entries of the memory that the functions below count in.
constexpr int64_t fold_counts(int32_t classes, int32_t folds) { return (int64_t{classes} + 1) * folds; }

// Writes the fold of each sample, and returns how many there are: `most`, or fewer where there are not as many units.
// In the order of the samples a unit goes to the fold with the fewest samples of its first one's class, of these with
// the fewest of all, and of these by chance, for samples may come in turns. Units with a sample of a rare class are in
// no fold, so that they are always trained on: of fewer than `fewest_of_class`, or of one where all classes are as
// small.
int32_t assign_folds(const FoldSamples& samples, int32_t most, int32_t* counts, uint8_t* folds);

// Those of a head; 0 and none for samples that are too few.
int32_t assign_head_folds(const FoldSamples& samples, int32_t* counts, uint8_t* folds);

}  // namespace pmt
