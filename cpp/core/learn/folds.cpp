#include "core/learn/folds.hpp"

namespace pmt {
namespace {

// Counts the samples of each class, and returns the fewest of which one may be held out.
int32_t count_classes(const FoldSamples& samples, int32_t* counts) {
  for (int32_t c = 0; c < samples.classes; ++c) counts[c] = 0;
  for (int32_t i = 0; i < samples.count; ++i) ++counts[samples.read(samples.context, i).label];
  for (int32_t c = 0; c < samples.classes; ++c) {
    if (counts[c] >= fewest_of_class) return fewest_of_class;
  }
  return 2;
}

}  // namespace

int32_t assign_folds(const FoldSamples& samples, int32_t most, int32_t* turns, uint8_t* folds) {
  const int32_t least = count_classes(samples, turns);
  for (int32_t i = 0; i < samples.count; ++i) {
    const FoldSample sample = samples.read(samples.context, i);
    if (sample.first == i) folds[i] = 0;
    if (turns[sample.label] < least) folds[sample.first] = no_fold;
  }
  for (int32_t c = 0; c < samples.classes; ++c) turns[c] = 0;
  for (int32_t i = 0; i < samples.count; ++i) {
    const FoldSample sample = samples.read(samples.context, i);
    if (sample.first == i && folds[i] != no_fold) ++turns[sample.label];
  }
  int32_t units = 0;
  for (int32_t c = 0; c < samples.classes; ++c) {
    const int32_t of_class = turns[c];
    turns[c] = units;
    units += of_class;
  }
  for (int32_t i = 0; i < samples.count; ++i) {
    const FoldSample sample = samples.read(samples.context, i);
    if (sample.first != i) {
      folds[i] = folds[sample.first];
    } else if (folds[i] != no_fold) {
      folds[i] = static_cast<uint8_t>(turns[sample.label]++ % most);
    }
  }
  return units < most ? units : most;
}

int32_t assign_head_folds(const FoldSamples& samples, int32_t* turns, uint8_t* folds) {
  return samples.count < 2 * head_folds ? 0 : assign_folds(samples, head_folds, turns, folds);
}

}  // namespace pmt
