#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include "core/learn/folds.hpp"
#include "random_source.hpp"

using namespace pmt;

namespace {

struct Case {
  std::vector<FoldSample> samples;
  int32_t classes;

  FoldSamples view() { return {samples.data(), read, static_cast<int32_t>(samples.size()), classes}; }
  static FoldSample read(void* context, int32_t index) { return static_cast<FoldSample*>(context)[index]; }
};

struct Found {
  std::vector<int32_t> folds;
  int32_t count;
};

Found found(Case c, int32_t most, bool of_head = false) {
  std::vector<int32_t> turns(static_cast<size_t>(c.classes));
  std::vector<uint8_t> folds(c.samples.size());
  const int32_t count = of_head ? assign_head_folds(c.view(), turns.data(), folds.data())
                                : assign_folds(c.view(), most, turns.data(), folds.data());
  return {{folds.begin(), folds.end()}, count};
}

Case alone(const std::vector<int32_t>& labels, int32_t classes) {
  Case c = {{}, classes};
  for (const int32_t label : labels) c.samples.push_back({label, static_cast<int32_t>(c.samples.size())});
  return c;
}

// The rule as sets: units sorted by the class of their first sample are dealt out.
std::map<int32_t, int32_t> dealt(const Case& c, int32_t most) {
  std::map<int32_t, int32_t> sizes;
  for (const FoldSample& sample : c.samples) ++sizes[sample.label];
  const bool all_small = std::all_of(sizes.begin(), sizes.end(), [](auto& one) { return one.second < 4; });
  std::set<int32_t> rare;
  for (const FoldSample& sample : c.samples) {
    if (sizes[sample.label] < (all_small ? 2 : 4)) rare.insert(sample.first);
  }
  std::set<std::pair<int32_t, int32_t>> units;
  for (const FoldSample& sample : c.samples) {
    if (rare.count(sample.first) == 0) units.insert({c.samples[static_cast<size_t>(sample.first)].label, sample.first});
  }
  std::map<int32_t, int32_t> folds;
  int32_t turn = 0;
  for (const auto& unit : units) folds[unit.second] = turn++ % most;
  return folds;
}

}  // namespace

TEST_CASE("samples of a class take turns, one class after another") {
  const Found all = found(alone({0, 1, 0, 1, 0, 1, 0, 1}, 2), 3);
  CHECK(all.folds == std::vector<int32_t>{0, 1, 1, 2, 2, 0, 0, 1});
  CHECK(all.count == 3);
}

TEST_CASE("a rare class is in no fold, and a class of one where all are as small") {
  CHECK(found(alone({0, 1, 0, 0, 1, 0, 1}, 2), 2).folds == std::vector<int32_t>{0, 255, 1, 0, 255, 1, 255});
  CHECK(found(alone({2, 0, 1, 2, 0, 2}, 4), 3).folds == std::vector<int32_t>{2, 0, 255, 0, 1, 1});
}

TEST_CASE("copies are in the fold of the first, and few units are as many folds") {
  const Found one = found({{{0, 0}, {0, 0}, {0, 2}, {0, 0}, {0, 2}, {1, 5}}, 2}, 4);
  CHECK(one.folds == std::vector<int32_t>{0, 0, 1, 0, 1, 255});
  CHECK(one.count == 2);
  CHECK(found(alone({0, 1}, 2), 3).count == 0);
}

TEST_CASE("a head has three folds, of six samples or more") {
  CHECK(found(alone({0, 0, 0, 0, 0}, 1), 0, true).count == 0);
  CHECK(found(alone({0, 0, 0, 0, 0, 0}, 1), 0, true).folds == std::vector<int32_t>{0, 1, 2, 0, 1, 2});
}

TEST_CASE("any labels and units are dealt out as sets are") {
  tests::RandomSource random(77);
  for (int repeat = 0; repeat < 300; ++repeat) {
    Case c = {{}, random.integer(1, 9)};
    const int32_t count = random.integer(0, 60);
    const int32_t most = random.integer(1, 12);
    const int32_t own = random.integer(1, 4);
    for (int32_t i = 0; i < count; ++i) {
      const bool is_first = i == 0 || random.integer(0, 4) < own;
      const int32_t other = is_first ? i : c.samples[static_cast<size_t>(random.integer(0, i - 1))].first;
      c.samples.push_back({random.integer(0, c.classes - 1), other});
    }
    const Found all = found(c, most);
    std::map<int32_t, int32_t> expected = dealt(c, most);
    CHECK(all.count == std::min(most, static_cast<int32_t>(expected.size())));
    for (size_t i = 0; i < c.samples.size(); ++i) {
      const auto at = expected.find(c.samples[i].first);
      CHECK(all.folds[i] == (at == expected.end() ? 255 : at->second));
    }
  }
}
