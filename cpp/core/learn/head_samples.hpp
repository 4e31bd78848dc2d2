// The samples that a head is trained on: its inputs, computed once, with their labels or targets.
#pragma once

#include "core/base/sample_source.hpp"
#include "core/zo/options.hpp"

namespace pmt {

// In no fold: such samples are never held out.
constexpr uint8_t no_fold = 255;

struct HeadSamples {
  SampleSource source;  // its images are the int8 inputs of the head
  int32_t count;
  const uint8_t* folds;  // the fold of each sample; null: none
  int32_t fold_count;
  Loss loss;  // cross_entropy, squared_error or binary_cross_entropy
};

// All samples but those of a fold, or those of the fold alone.
struct SampleRange {
  int32_t fold = no_fold;
  bool held_out = false;

  bool has(const HeadSamples& samples, int32_t index) const {
    return (samples.folds != nullptr && samples.folds[index] == fold && fold != no_fold) == held_out;
  }
};

}  // namespace pmt
