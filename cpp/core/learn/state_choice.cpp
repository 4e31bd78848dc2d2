#include "core/learn/state_choice.hpp"

namespace pmt {

bool is_worse(const int32_t* losses, const int32_t* than, int32_t samples, int32_t errors) {
  PairedLosses pairs;
  for (int32_t i = 0; i < samples; ++i) pairs.add(losses[i], than[i]);
  return pairs.is_worse(errors);
}

bool is_better(const ScoredState& original, const ScoredState& best, const ScoredState& state, int32_t samples,
               int32_t errors, bool is_alternative) {
  int64_t less = 0;
  for (int32_t i = 0; i < samples; ++i) less += int64_t{best.losses[i]} - state.losses[i];
  const bool beats_best = is_alternative ? is_worse(best.losses, state.losses, samples, 1) : less > 0;
  return beats_best && state.correct >= original.correct && is_worse(original.losses, state.losses, samples, errors);
}

}  // namespace pmt
