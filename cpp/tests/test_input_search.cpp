// The search in steps against its definition, a function that tries filters where it needs them.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <vector>

#include "core/image/model_checks.hpp"
#include "core/learn/input_search.hpp"
#include "core/learn/shifted_view.hpp"
#include "core/learn/state_choice.hpp"
#include "tests/image_builder.hpp"
#include "tests/random_source.hpp"

using namespace pmt;
using namespace pmt::tests;

namespace {

using Chain = std::vector<FilterRecord>;
using Key = std::vector<int32_t>;

Key key_of(const Chain& chain) {
  Key key;
  for (const FilterRecord& filter : chain) {
    for (const int32_t value :
         {static_cast<int32_t>(filter.kind), filter.strength, static_cast<int32_t>(filter.noise)}) {
      key.push_back(value);
    }
  }
  return key;
}

Chain chain_of(const FilterChain& filters) { return {filters.records, filters.records + filters.count}; }

// A landscape over filters: a best strength of each kind, and noise image by image.
struct World {
  explicit World(uint64_t seed) : random(seed), noise(random.integer(1, 4000)) {
    for (int32_t& level : levels) level = random.integer(-3000, 3000);
    for (int32_t& best : strengths) best = random.integer(2, 90);
  }
  std::vector<int32_t> measure(const Chain& chain, int32_t images) {
    int32_t level = 20000;
    for (const FilterRecord& filter : chain) {
      const auto kind = static_cast<size_t>(filter.kind);
      level += levels[kind] + 7 * std::abs(std::abs(filter.strength) - strengths[kind]);
    }
    uint64_t seed = static_cast<uint64_t>(images);
    for (const int32_t value : key_of(chain)) seed = seed * 1000003u + static_cast<uint64_t>(value + 1000);
    RandomSource own(seed);
    std::vector<int32_t> found(static_cast<size_t>(images));
    for (int32_t& value : found) value = level + own.integer(-noise, noise);
    return found;
  }
  static int64_t entropy(const std::vector<int32_t>& disagreements) { return disagreements[0]; }

  RandomSource random;
  int32_t noise;
  int32_t levels[words<FilterKind>.count], strengths[words<FilterKind>.count];
};

FilterRecord scaled(FilterRecord filter, double factor) {
  const StrengthRange range = strength_range(filter.kind);
  const int32_t size = std::abs(filter.strength);
  int32_t other = static_cast<int32_t>(std::nearbyint(size * factor / 10.0));
  if (factor > 10.0) other = std::max(size + 1, other);
  other = std::clamp(filter.strength < 0 ? -other : other, range.low, range.high);
  if (other != 0) filter.strength = other;
  return filter;
}

class Definition {
 public:
  Definition(World& world, const Model& model, int32_t images) : world_(world) {
    for (const int32_t most : {InputSearch::bank_images, InputSearch::best_images, images}) {
      counts_.push_back(std::min(most, images));
    }
    for (int32_t i = 0; i < model.filter_count(); ++i) own_.push_back(model.filter(i));
    for (const FilterRecord& filter : input_bank) {
      const bool fits = filter_is_valid(*model.stage(), filter) && key_of({filter}) != key_of(own_);
      if (fits) bank_.push_back({filter});
    }
  }

  Chain chosen() {
    if (counts_[2] < InputSearch::fewest_images) return own_;
    std::vector<Chain> all = {own_};
    all.insert(all.end(), bank_.begin(), bank_.end());
    sort(all, 0);
    const auto is_own = [&](const Chain& chain) { return key_of(chain) == key_of(own_); };
    const auto place = std::find_if(all.begin(), all.end(), is_own);
    const std::vector<Chain> hopeful(all.begin(), place);
    all.erase(place);
    all.resize(std::min<size_t>(all.size(), InputSearch::kept));
    sort(all, 1);
    Chain best = strongest(all[0]);
    for (const Chain& other : hopeful) {
      if (other[0].kind == best[0].kind) continue;
      const Chain both = {best[0], other[0]};
      if (!is_worse(best, both, 1)) continue;
      best = strongest(both);
      break;
    }
    const bool surer = World::entropy(measured(best, 2)) < World::entropy(measured(own_, 2));
    return is_worse(own_, best, 2) && surer ? best : own_;
  }

 private:
  const std::vector<int32_t>& measured(const Chain& chain, size_t part) {
    auto& found = measured_[{key_of(chain), counts_[part]}];
    if (found.empty()) found = world_.measure(chain, counts_[part]);
    return found;
  }
  int64_t sum(const Chain& chain, size_t part) {
    const auto& all = measured(chain, part);
    return std::accumulate(all.begin(), all.end(), int64_t{0});
  }
  void sort(std::vector<Chain>& chains, size_t part) {
    const auto less = [&](const Chain& a, const Chain& b) { return sum(a, part) < sum(b, part); };
    std::stable_sort(chains.begin(), chains.end(), less);
  }
  bool is_worse(const Chain& chain, const Chain& than, size_t part) {
    return pmt::is_worse(measured(chain, part).data(), measured(than, part).data(), counts_[part], 2);
  }
  Chain strongest(Chain best) {
    for (const double factor : {7.0, 14.0}) {
      for (int32_t step = 0; step < 4; ++step) {
        Chain next = best;
        next.back() = scaled(next.back(), factor);
        if (!(sum(next, 1) < sum(best, 1))) break;
        best = next;
      }
    }
    return best;
  }

  World& world_;
  std::vector<int32_t> counts_;
  Chain own_;
  std::vector<Chain> bank_;
  std::map<std::pair<Key, int32_t>, std::vector<int32_t>> measured_;
};

}  // namespace

TEST_CASE("a search in steps finds what its definition finds") {
  int32_t changed = 0, two = 0;
  for (uint64_t seed = 0; seed < 400; ++seed) {
    World world(seed);
    RandomSource& random = world.random;
    ImageBuilder builder({{8, 8, 3}, {1, 1, 3}});
    builder.add_op(plain_op(OpKind::mean, 0, 1));
    Chain own;
    const int32_t side = random.pick<int32_t>({3, 8, 20});  // 3: too small for shrinkage
    if (side > 3 && random.chance(3)) own.push_back(input_bank[random.integer(0, input_bank_size - 1)]);
    if (random.chance(6)) own.push_back({FilterKind::tone_curve, 3, NoiseModel::constant, 0});
    builder.set_stage(side, side, own);
    const OwnedModel model(builder.build());
    const int32_t images = random.pick<int32_t>({29, 30, 77, 100, 101, 250, 300, 301, 500});
    AlignedBytes memory(1 << 14);
    Arena arena(memory.data(), memory.size());
    InputSearch search;
    search.take(images, arena);
    search.start(model, images);
    while (!search.is_over()) {
      const std::vector<int32_t> found = world.measure(chain_of(search.candidate()), search.images());
      search.report(found.data(), World::entropy(found));
    }
    const Chain chosen = chain_of(search.best());
    CHECK(key_of(chosen) == key_of(Definition(world, model, images).chosen()));
    changed += key_of(chosen) != key_of(own) ? 1 : 0;
    two += chosen.size() == 2 ? 1 : 0;
  }
  CHECK(changed > 50);
  CHECK(two > 10);
}

TEST_CASE("views are shifted to either side, and edges are repeated") {
  TensorRecord shape = {};
  shape.height = 2;
  shape.width = 3;
  shape.channels = 1;
  const std::vector<int8_t> image = {1, 2, 3, 4, 5, 6};
  const std::vector<int8_t> expected[] = {image, {1, 1, 2, 1, 1, 2}, {5, 6, 6, 5, 6, 6}};
  for (int32_t v = 0; v < shifted_views; ++v) {
    std::vector<int8_t> view = image;
    shift_image(shape, v, view.data());
    CHECK(view == expected[v]);
  }
  shape.height = shape.width = 64;
  std::vector<int8_t> wide(64 * 64, 0);
  wide[64 * 10 + 10] = 1;
  shift_image(shape, 1, wide.data());
  CHECK(wide[64 * 12 + 12] == 1);
  CHECK(std::count(wide.begin(), wide.end(), 1) == 1);
}
