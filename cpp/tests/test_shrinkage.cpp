// Shrunk statistics against their definition in double.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/align/shrinkage.hpp"
#include "tests/random_source.hpp"

using namespace pmt;
using tests::RandomSource;

namespace {

using Doubles = std::vector<double>;
using Statistics = std::vector<ChannelStatistics>;

struct Moments {
  double mean = 0.0, variance_of_mean = 0.0;
};

Moments moments(const Doubles& values, const std::vector<int32_t>& images) {
  double count = 0.0;
  for (const int32_t n : images) count += n;
  Moments found;
  for (size_t g = 0; g < values.size(); ++g) found.mean += values[g] * images[g] / count;
  for (size_t g = 0; g < values.size(); ++g) {
    found.variance_of_mean += images[g] / count * std::pow(values[g] - found.mean, 2) / (images.size() - 1.0);
  }
  return found;
}

double factor(double square, double variance, double caution) {
  return square > 0.0 ? std::max(0.0, 1.0 - caution * variance / square) : 0.0;
}

struct Case {
  explicit Case(RandomSource& random) : channels(random.integer(1, 12)), groups(random.integer(2, 5)) {
    const double shift = random.pick<double>({0.0, 0.3, 3.0}), scatter = random.pick<double>({0.01, 0.5});
    for (int32_t g = 0; g < groups; ++g) images.push_back(random.integer(1, 9));
    for (int32_t c = 0; c < channels; ++c) {
      reference.push_back({static_cast<float>(random.real(-2.0, 2.0)), static_cast<float>(random.real(0.5, 2.0))});
    }
    for (int32_t g = 0; g < groups; ++g) {
      for (const ChannelStatistics& clean : reference) {
        const double mean = clean.mean + shift + scatter * random.real(-1.0, 1.0);
        const double deviation = clean.deviation * (1.0 + 0.2 * shift + 0.3 * scatter * random.real(-1.0, 1.0));
        found.push_back({static_cast<float>(mean), static_cast<float>(deviation)});
      }
    }
  }

  ImageGroups image_groups() const { return {groups, images.data()}; }
  Statistics shrunk() const {
    Statistics result(reference.size());
    shrink_channels(channels, reference.data(), image_groups(), found.data(), result.data());
    return result;
  }

  int32_t channels, groups;
  std::vector<int32_t> images;
  Statistics reference, found;
};

}  // namespace

TEST_CASE("channels are shrunk by what scatter explains of the layer's distance") {
  for (uint64_t seed = 0; seed < 60; ++seed) {
    RandomSource random(seed);
    const Case c(random);
    double square[2] = {}, variance[2] = {};
    std::vector<std::pair<double, double>> pooled;
    for (int32_t k = 0; k < c.channels; ++k) {
      Doubles means, deviations, squares;
      for (int32_t g = 0; g < c.groups; ++g) {
        const ChannelStatistics& of = c.found[static_cast<size_t>(g * c.channels + k)];
        means.push_back(of.mean);
        deviations.push_back(of.deviation);
        squares.push_back(std::pow(of.deviation, 2) + std::pow(of.mean, 2));
      }
      const Moments mean = moments(means, c.images), deviation = moments(deviations, c.images);
      const double all = std::sqrt(moments(squares, c.images).mean - mean.mean * mean.mean);
      const ChannelStatistics& clean = c.reference[static_cast<size_t>(k)];
      const double unit = clean.deviation;
      square[0] += std::pow((mean.mean - clean.mean) / unit, 2);
      variance[0] += mean.variance_of_mean / (unit * unit);
      square[1] += std::pow((all - unit) / unit, 2);
      variance[1] += deviation.variance_of_mean / (unit * unit);
      pooled.emplace_back(mean.mean, all);
    }
    const Statistics shrunk = c.shrunk();
    for (size_t k = 0; k < shrunk.size(); ++k) {
      const double of_mean = factor(square[0], variance[0], 1.0), of_deviation = factor(square[1], variance[1], 1.0);
      const ChannelStatistics& clean = c.reference[k];
      CHECK(shrunk[k].mean == doctest::Approx(clean.mean + of_mean * (pooled[k].first - clean.mean)).epsilon(1e-4));
      CHECK(shrunk[k].deviation ==
            doctest::Approx(clean.deviation + of_deviation * (pooled[k].second - clean.deviation)).epsilon(1e-4));
    }
  }
}

TEST_CASE("a shift that every group sees is kept, a single group tells nothing") {
  const Statistics reference = {{1.0f, 2.0f}, {-1.0f, 0.5f}};
  const Statistics found = {{2.0f, 3.0f}, {0.0f, 1.0f}};
  const int32_t images[] = {3, 5};
  const Statistics both = {found[0], found[1], found[0], found[1]};
  Statistics shrunk(2);
  shrink_channels(2, reference.data(), {2, images}, both.data(), shrunk.data());
  for (size_t c = 0; c < 2; ++c) {
    CHECK(shrunk[c].mean == doctest::Approx(found[c].mean));
    CHECK(shrunk[c].deviation == doctest::Approx(found[c].deviation));
  }
  shrink_channels(2, reference.data(), {1, images}, found.data(), shrunk.data());
  for (size_t c = 0; c < 2; ++c) {
    CHECK(shrunk[c].mean == reference[c].mean);
    CHECK(shrunk[c].deviation == reference[c].deviation);
  }
}

TEST_CASE("channels that are constant in the reference or as found have no part in it") {
  const Statistics reference = {{1.0f, 0.0f}, {1.0f, 2.0f}, {1.0f, 2.0f}};
  const Statistics found = {{9.0f, 1.0f}, {7.0f, 0.0f}, {2.0f, 3.0f}};
  Statistics both = found, shrunk(3);
  both.insert(both.end(), found.begin(), found.end());
  const int32_t images[] = {1, 1};
  shrink_channels(3, reference.data(), {2, images}, both.data(), shrunk.data());
  CHECK(shrunk[0].mean == 9.0f);
  CHECK(shrunk[1].deviation == 0.0f);
  CHECK(shrunk[2].mean == doctest::Approx(2.0f));
}

TEST_CASE("windows are shrunk relative to their mean variance, with twice the caution") {
  for (uint64_t seed = 0; seed < 40; ++seed) {
    RandomSource random(seed);
    const WindowGroups windows = {random.integer(1, 3), random.integer(1, 2), 3, 3};
    const int32_t values = windows.values(), all = windows.count * values, groups = random.integer(2, 4);
    const double shift = random.pick<double>({0.0, 0.1, 1.0}), scatter = random.pick<double>({0.01, 0.2});
    std::vector<int32_t> images;
    for (int32_t g = 0; g < groups; ++g) images.push_back(random.integer(1, 4));
    const auto is_variance = [&](int32_t i) {
      return i % values < windows.channels * windows.channels && i % values % (windows.channels + 1) == 0;
    };
    std::vector<float> reference, found;
    for (int32_t i = 0; i < all; ++i) {
      reference.push_back(is_variance(i) ? 1.0f : static_cast<float>(random.real(-0.4, 0.4)));
    }
    for (int32_t g = 0; g < groups; ++g) {
      for (int32_t i = 0; i < all; ++i) {
        const double moved = shift * (i % 3 - 1) * 0.3 + scatter * random.real(-1.0, 1.0);
        found.push_back(static_cast<float>(50.0 * (reference[static_cast<size_t>(i)] + moved)));
      }
    }
    const auto value = [&](int32_t i) {
      Doubles of;
      for (int32_t g = 0; g < groups; ++g) of.push_back(found[static_cast<size_t>(g * all + i)]);
      return moments(of, images);
    };
    const auto scale = [&](int32_t i, bool clean) {
      double sum = 0.0;
      for (int32_t j = i / values * values; j < (i / values + 1) * values; ++j) {
        if (is_variance(j)) sum += clean ? static_cast<double>(reference[static_cast<size_t>(j)]) : value(j).mean;
      }
      return sum / windows.channels;
    };
    double square = 0.0, variance = 0.0;
    for (int32_t i = 0; i < all; ++i) {
      const double now = scale(i, false);
      square += std::pow(value(i).mean / now - reference[static_cast<size_t>(i)] / scale(i, true), 2);
      variance += value(i).variance_of_mean / (now * now);
    }
    const double kept = factor(square, variance, 2.0);
    std::vector<float> shrunk(static_cast<size_t>(all)), squares(shrunk);
    WindowScatter groups_found;
    groups_found.begin(shrunk.data(), squares.data(), all);
    for (int32_t g = 0; g < groups; ++g) {
      groups_found.add(images[static_cast<size_t>(g)],
                       [&](int32_t i) { return found[static_cast<size_t>(g * all + i)]; });
    }
    shrink_windows(windows, reference.data(), groups_found);
    for (int32_t i = 0; i < all; ++i) {
      const double now = scale(i, false), clean = reference[static_cast<size_t>(i)] / scale(i, true);
      const double expected = now * (clean + kept * (value(i).mean / now - clean));
      CHECK(shrunk[static_cast<size_t>(i)] == doctest::Approx(expected).epsilon(2e-3));
    }
  }
}
