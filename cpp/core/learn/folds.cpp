#include "core/learn/folds.hpp"

#include "core/base/random.hpp"

namespace pmt {
namespace {

void clear(int32_t* counts, int64_t count) {
  for (int64_t i = 0; i < count; ++i) counts[i] = 0;
}

// Writes no_fold at the first sample of a unit with one of a rare class, and 0 at the others.
void exclude_rare(const FoldSamples& samples, int32_t* sizes, uint8_t* folds) {
  clear(sizes, samples.classes);
  int32_t largest = 0;
  for (int32_t i = 0; i < samples.count; ++i) {
    const int32_t size = ++sizes[samples.read(samples.context, i).label];
    largest = size > largest ? size : largest;
  }
  const int32_t least = largest >= fewest_of_class ? fewest_of_class : 2;
  for (int32_t i = 0; i < samples.count; ++i) {
    const FoldSample sample = samples.read(samples.context, i);
    if (sample.first == i) folds[i] = 0;
    if (sizes[sample.label] < least) folds[sample.first] = no_fold;
  }
}

// A number of a sample, below `end`, in no pattern that samples may come in.
int32_t scattered(int32_t sample, int32_t end) {
  const uint32_t word = xorshift32(xorshift32((static_cast<uint32_t>(sample) + 1) * 0x9e3779b9u));
  return static_cast<int32_t>((uint64_t{word} * static_cast<uint32_t>(end)) >> 32);
}

// Returns one of `count` folds: with the fewest samples of a class, and of these with the fewest of all.
int32_t emptiest(const int32_t* of_class, const int32_t* of_all, int32_t count, int32_t sample) {
  int32_t best = 0, equal = 0;
  for (int32_t fold = 0; fold < count; ++fold) {
    const int32_t of_these = of_class[fold] - of_class[best];
    const int32_t more = of_these != 0 ? of_these : of_all[fold] - of_all[best];
    if (more > 0) continue;
    equal = more < 0 ? 1 : equal + 1;
    best = more < 0 ? fold : best;
  }
  int32_t left = scattered(sample, equal);
  for (int32_t fold = best;; ++fold) {
    if (of_class[fold] == of_class[best] && of_all[fold] == of_all[best] && left-- == 0) return fold;
  }
}

}  // namespace

int32_t assign_folds(const FoldSamples& samples, int32_t most, int32_t* counts, uint8_t* folds) {
  exclude_rare(samples, counts, folds);
  clear(counts, fold_counts(samples.classes, most));
  int32_t* const of_all = counts + int64_t{samples.classes} * most;
  int32_t found = 0;
  for (int32_t i = 0; i < samples.count; ++i) {
    const FoldSample sample = samples.read(samples.context, i);
    int32_t* const of_class = counts + int64_t{sample.label} * most;
    if (sample.first == i && folds[i] != no_fold) {
      // An empty fold is the emptiest one: none is left behind.
      const int32_t open = found < most ? found + 1 : most;
      folds[i] = static_cast<uint8_t>(emptiest(of_class, of_all, open, i));
      if (folds[i] == found) ++found;
    }
    folds[i] = folds[sample.first];
    if (folds[i] == no_fold) continue;
    ++of_class[folds[i]];
    ++of_all[folds[i]];
  }
  return found;
}

int32_t assign_head_folds(const FoldSamples& samples, int32_t* counts, uint8_t* folds) {
  return samples.count < 2 * head_folds ? 0 : assign_folds(samples, head_folds, counts, folds);
}

}  // namespace pmt
