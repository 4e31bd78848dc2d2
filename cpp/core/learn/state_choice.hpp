// The choice among the states of a model, by the losses of the same held-out samples: the original stays unless another
// is better beyond doubt, so that no training makes a good model worse by chance.
#pragma once

#include "core/learn/paired_losses.hpp"

namespace pmt {

// Standard errors by which a state must be better than the original. A head held to the old one is better by one of
// them by chance.
constexpr int32_t state_errors = 2;
// Of a trained state on fewer samples than these: on few of them it is better by two by chance.
constexpr int32_t few_state_errors = 3, few_held_out = 30;
// With fewer held-out samples chance would choose.
constexpr int32_t fewest_held_out = 4;

// A state on `samples` samples.
struct ScoredState {
  const int32_t* losses;
  int32_t correct;
};

// Whether a state is worse than another, in its mean loss, by more than `errors` standard errors.
bool is_worse(const int32_t* losses, const int32_t* than, int32_t samples, int32_t errors);

// Whether a state replaces the best one so far: its mean loss is less, and less than the original's by more than
// `errors` standard errors, and it classifies no fewer samples correctly than the original. An alternative, which does
// without what led to the best one, must be better than that by more than one standard error.
bool is_better(const ScoredState& original, const ScoredState& best, const ScoredState& state, int32_t samples,
               int32_t errors, bool is_alternative);

}  // namespace pmt
