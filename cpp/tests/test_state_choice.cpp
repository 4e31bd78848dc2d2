// Which of two states is worse, and which one is kept, at the edges of the rule.
#include <doctest/doctest.h>

#include <array>

#include "core/learn/state_choice.hpp"

using namespace pmt;

namespace {

constexpr int32_t samples = 4;
using Losses = std::array<int32_t, samples + 1>;  // and one that nobody may read

bool replaces_best(const Losses& state, int32_t errors, bool is_alternative, int32_t correct = 3) {
  const Losses original = {20, 20, 20, 20, 20}, best = {10, 10, 10, 10, 900};
  return is_better({original.data(), 3}, {best.data(), 4}, {state.data(), correct}, samples, errors, is_alternative);
}

bool replaces_original(const Losses& state, int32_t errors) {
  const Losses original = {20, 20, 20, 20, 900};
  const ScoredState first = {original.data(), 3};
  return is_better(first, first, {state.data(), 3}, samples, errors, false);
}

}  // namespace

TEST_CASE("a state is worse by the standard errors asked for, over all samples and no other") {
  const Losses losses = {8, 0, 4, 0, -900}, than = {0, 0, 0, 0, 900};
  CHECK(is_worse(losses.data(), than.data(), samples, 1));
  CHECK_FALSE(is_worse(losses.data(), than.data(), samples, 2));
  CHECK_FALSE(is_worse(than.data(), losses.data(), samples, 1));
}

TEST_CASE("the least smaller loss replaces the best state, an equal one does not") {
  CHECK(replaces_best({9, 10, 10, 10, 0}, 2, false));
  CHECK_FALSE(replaces_best({9, 11, 10, 10, 0}, 2, false));
  CHECK_FALSE(replaces_best({11, 10, 10, 10, 0}, 2, false));
}

TEST_CASE("a state that classifies fewer samples correctly than the original does not replace the best one") {
  CHECK_FALSE(replaces_best({9, 10, 10, 10, 0}, 2, false, 2));
}

TEST_CASE("a state must be better than the original by the standard errors asked for") {
  CHECK(replaces_original({10, 15, 20, 15, 0}, 2));
  CHECK_FALSE(replaces_original({10, 15, 20, 15, 0}, 3));
}

TEST_CASE("an alternative must be better than the best state by more than one standard error") {
  CHECK(replaces_best({0, 10, 5, 10, 0}, 2, true));
  CHECK_FALSE(replaces_best({5, 10, 10, 12, 0}, 2, true));
  CHECK(replaces_best({5, 10, 10, 12, 0}, 2, false));
}
