#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <set>
#include <vector>

#include "core/learn/folds.hpp"
#include "random_source.hpp"
#include "reference/random.hpp"

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
  std::vector<int32_t> counts(static_cast<size_t>(fold_counts(c.classes, of_head ? head_folds : most)));
  std::vector<uint8_t> folds(c.samples.size());
  const int32_t count = of_head ? assign_head_folds(c.view(), counts.data(), folds.data())
                                : assign_folds(c.view(), most, counts.data(), folds.data());
  return {{folds.begin(), folds.end()}, count};
}

Case alone(const std::vector<int32_t>& labels, int32_t classes) {
  Case c = {{}, classes};
  for (const int32_t label : labels) c.samples.push_back({label, static_cast<int32_t>(c.samples.size())});
  return c;
}

// The rule as maps, from the samples of each unit.
std::map<int32_t, int32_t> dealt(const Case& c, int32_t most) {
  std::map<int32_t, int32_t> sizes, folds, of_all;
  std::map<int32_t, std::map<int32_t, int32_t>> of_class;
  for (const FoldSample& sample : c.samples) ++sizes[sample.label];
  const bool all_small = std::all_of(sizes.begin(), sizes.end(), [](auto& one) { return one.second < 4; });
  std::set<int32_t> rare;
  for (const FoldSample& sample : c.samples) {
    if (sizes[sample.label] < (all_small ? 2 : 4)) rare.insert(sample.first);
  }
  for (size_t i = 0; i < c.samples.size(); ++i) {
    const FoldSample& sample = c.samples[i];
    if (rare.count(sample.first) != 0) continue;
    if (folds.count(sample.first) == 0) {
      std::map<std::pair<int32_t, int32_t>, std::vector<int32_t>> fewest;
      for (int32_t fold = 0; fold < std::min(most, static_cast<int32_t>(of_all.size()) + 1); ++fold) {
        fewest[{of_class[sample.label][fold], of_all.count(fold) != 0 ? of_all[fold] : 0}].push_back(fold);
      }
      const std::vector<int32_t>& equal = fewest.begin()->second;
      const uint32_t chance = reference::xorshift32(reference::xorshift32(static_cast<uint32_t>(i + 1) * 2654435769u));
      folds[sample.first] = equal[static_cast<size_t>((uint64_t{chance} * equal.size()) >> 32)];
    }
    ++of_class[sample.label][folds[sample.first]];
    ++of_all[folds[sample.first]];
  }
  return folds;
}

}  // namespace

TEST_CASE("each fold has its share of a class, and no pattern of the order") {
  std::vector<int32_t> labels;
  for (int32_t i = 0; i < 900; ++i) labels.push_back(i / 3 % 4);
  const Found all = found(alone(labels, 4), 3);
  CHECK(all.count == 3);
  std::map<std::pair<int32_t, int32_t>, int32_t> of_class, in_turn;
  for (int32_t i = 0; i < 900; ++i) {
    const int32_t fold = all.folds[static_cast<size_t>(i)];
    ++of_class[{fold, labels[static_cast<size_t>(i)]}];
    ++in_turn[{fold, i % 3}];
  }
  for (const auto& share : of_class) CHECK(share.second == 75);
  for (const auto& share : in_turn) CHECK(std::abs(share.second - 100) < 25);  // three standard deviations
}

TEST_CASE("a rare class is in no fold, and a class of one where all are as small") {
  CHECK(found(alone({0, 1, 0, 0, 1, 0, 1}, 2), 2).folds == std::vector<int32_t>{0, 255, 1, 1, 255, 0, 255});
  CHECK(found(alone({2, 0, 1, 2, 0, 2}, 4), 3).folds == std::vector<int32_t>{0, 1, 255, 2, 2, 1});
}

TEST_CASE("copies are in the fold of the first, and few units are as many folds") {
  const Found one = found({{{0, 0}, {0, 0}, {0, 2}, {0, 0}, {0, 2}, {1, 5}}, 2}, 4);
  CHECK(one.folds == std::vector<int32_t>{0, 0, 1, 0, 1, 255});
  CHECK(one.count == 2);
  CHECK(found(alone({0, 1}, 2), 3).count == 0);
}

TEST_CASE("groups of unequal sizes make folds of like sizes") {
  Case c = {{}, 1};
  for (int32_t group = 0; group < 30; ++group) {
    const auto first = static_cast<int32_t>(c.samples.size());
    for (int32_t i = 0; i < (group % 3 == 0 ? 98 : 1); ++i) c.samples.push_back({0, first});
  }
  std::map<int32_t, int32_t> sizes;
  for (const int32_t fold : found(c, 3).folds) ++sizes[fold];
  CHECK(sizes[0] + sizes[1] + sizes[2] == 1000);
  for (const auto& one : sizes) CHECK(std::abs(one.second - 333) < 98);
}

TEST_CASE("a head has three folds, of six samples or more") {
  CHECK(found(alone({0, 0, 0, 0, 0}, 1), 0, true).count == 0);
  CHECK(found(alone({0, 0, 0, 0, 0, 0}, 1), 0, true).count == 3);
}

TEST_CASE("any labels and units are dealt out as maps are") {
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
