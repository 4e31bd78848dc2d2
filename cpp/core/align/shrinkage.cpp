#include "core/align/shrinkage.hpp"

namespace pmt {
namespace {

constexpr float window_caution = 2.0f;

// The share of all images that each group has.
class GroupShares {
 public:
  explicit GroupShares(const ImageGroups& groups) : groups_(groups) {
    int64_t count = 0;
    for (int32_t g = 0; g < groups.count; ++g) count += groups.images[g];
    images_ = to_float(count);
  }
  int32_t count() const { return groups_.count; }
  float operator[](int32_t group) const { return to_float(groups_.images[group]) / images_; }

 private:
  const ImageGroups& groups_;
  float images_;
};

// A value of each group, `stride` floats apart: its mean over the images, and the variance of that mean, from the
// scatter of the groups.
struct Pooled {
  float mean = 0.0f, variance = 0.0f;

  Pooled(const GroupShares& shares, const float* values, int64_t stride) {
    for (int32_t g = 0; g < shares.count(); ++g) mean += shares[g] * values[g * stride];
    if (shares.count() < 2) return;
    for (int32_t g = 0; g < shares.count(); ++g) {
      const float apart = values[g * stride] - mean;
      variance += shares[g] * apart * apart;
    }
    variance /= to_float(shares.count() - 1);
  }
};

// The share of a distance that scatter does not explain.
class Shrinkage {
 public:
  void add(float distance, float variance) {
    square_ += distance * distance;
    variance_ += variance;
  }
  float factor(int32_t groups, float caution) const {
    if (groups < 2 || !(square_ > 0.0f)) return 0.0f;
    const float left = 1.0f - caution * variance_ / square_;
    return left > 0.0f ? left : 0.0f;
  }

 private:
  float square_ = 0.0f, variance_ = 0.0f;
};

// Mean variance of a group of channels: lag (0, 0) of each with itself.
float mean_variance(const WindowGroups& windows, const float* values) {
  float sum = 0.0f;
  for (int32_t c = 0; c < windows.channels; ++c) sum += values[c * (windows.channels + 1)];
  return sum / to_float(windows.channels);
}

}  // namespace

void shrink_channels(int32_t channels, const ChannelStatistics* reference, const ImageGroups& groups,
                     const ChannelStatistics* found, ChannelStatistics* shrunk) {
  const GroupShares shares(groups);
  Shrinkage means, deviations;
  for (int32_t c = 0; c < channels; ++c) {
    const Pooled mean(shares, &found[c].mean, 2 * int64_t{channels});
    const Pooled deviation(shares, &found[c].deviation, 2 * int64_t{channels});
    // The variance of all is the mean one, and what the groups' means differ by.
    float square = 0.0f;
    for (int32_t g = 0; g < groups.count; ++g) {
      const ChannelStatistics& of = found[g * channels + c];
      const float apart = of.mean - mean.mean;
      square += shares[g] * (of.deviation * of.deviation + apart * apart);
    }
    shrunk[c] = {mean.mean, square > 0.0f ? __builtin_sqrtf(square) : 0.0f};
    const float unit = reference[c].deviation;
    if (!(unit > 0.0f) || !(shrunk[c].deviation > 0.0f)) continue;
    means.add((mean.mean - reference[c].mean) / unit, mean.variance / (unit * unit));
    deviations.add((shrunk[c].deviation - unit) / unit, deviation.variance / (unit * unit));
  }
  const float of_means = means.factor(groups.count, 1.0f), of_deviations = deviations.factor(groups.count, 1.0f);
  for (int32_t c = 0; c < channels; ++c) {
    if (!(reference[c].deviation > 0.0f) || !(shrunk[c].deviation > 0.0f)) continue;
    shrunk[c].mean = reference[c].mean + of_means * (shrunk[c].mean - reference[c].mean);
    shrunk[c].deviation = reference[c].deviation + of_deviations * (shrunk[c].deviation - reference[c].deviation);
  }
}

void WindowScatter::begin(float* means, float* squares, int32_t count) {
  means_ = means;
  squares_ = squares;
  count_ = count;
  images_ = groups_ = 0;
  for (int32_t i = 0; i < count; ++i) means[i] = squares[i] = 0.0f;
}

void shrink_windows(const WindowGroups& windows, const float* reference, WindowScatter& scatter) {
  const int32_t values = windows.values();
  float* const means = scatter.means();
  // Calls visit(value, clean, now) for each value of the groups of channels that vary: relative to the mean variance,
  // the reference's value, and the variance of all images.
  const auto for_varied = [&](const auto& visit) {
    for (int32_t k = 0; k < windows.count; ++k) {
      const float known = mean_variance(windows, reference + k * values);
      const float now = mean_variance(windows, means + k * values);
      if (!(known > 0.0f) || !(now > 0.0f)) continue;
      for (int32_t i = k * values; i < (k + 1) * values; ++i) visit(i, reference[i] / known, now);
    }
  };
  Shrinkage shrinkage;
  for_varied([&](int32_t i, float clean, float now) {
    shrinkage.add(means[i] / now - clean, scatter.variance(i) / now / now);
  });
  const float factor = shrinkage.factor(scatter.groups(), window_caution);
  for_varied([&](int32_t i, float clean, float now) { means[i] = now * (clean + factor * (means[i] / now - clean)); });
}

}  // namespace pmt
