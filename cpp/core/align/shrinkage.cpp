#include "core/align/shrinkage.hpp"

#include "core/base/arithmetic.hpp"

namespace pmt {
namespace {

constexpr float window_caution = 2.0f;

int64_t image_count(const ImageGroups& groups) {
  int64_t count = 0;
  for (int32_t g = 0; g < groups.count; ++g) count += groups.images[g];
  return count;
}

// Mean of value(group) over the images, and the variance of that mean, from the scatter of the groups.
struct Pooled {
  float mean, variance;

  template <typename Value>
  Pooled(const ImageGroups& groups, const Value& value) : mean(0.0f), variance(0.0f) {
    const float images = to_float(image_count(groups));
    const auto share = [&](int32_t g) { return to_float(groups.images[g]) / images; };
    for (int32_t g = 0; g < groups.count; ++g) mean += share(g) * value(g);
    if (groups.count < 2) return;
    for (int32_t g = 0; g < groups.count; ++g) variance += share(g) * (value(g) - mean) * (value(g) - mean);
    variance /= to_float(groups.count - 1);
  }
};

// The share of a distance that scatter does not explain.
class Shrinkage {
 public:
  void add(float distance, float variance) {
    square_ += distance * distance;
    variance_ += variance;
  }
  float factor(const ImageGroups& groups, float caution) const {
    if (groups.count < 2 || !(square_ > 0.0f)) return 0.0f;
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
  Shrinkage means, deviations;
  for (int32_t c = 0; c < channels; ++c) {
    const auto of = [&](int32_t g) -> const ChannelStatistics& { return found[g * channels + c]; };
    const Pooled mean(groups, [&](int32_t g) { return of(g).mean; });
    const Pooled deviation(groups, [&](int32_t g) { return of(g).deviation; });
    // The variance of all is the mean one, and what the groups' means differ by.
    const Pooled square(groups, [&](int32_t g) {
      const float apart = of(g).mean - mean.mean;
      return of(g).deviation * of(g).deviation + apart * apart;
    });
    shrunk[c] = {mean.mean, square.mean > 0.0f ? __builtin_sqrtf(square.mean) : 0.0f};
    const float unit = reference[c].deviation;
    if (!(unit > 0.0f) || !(shrunk[c].deviation > 0.0f)) continue;
    means.add((mean.mean - reference[c].mean) / unit, mean.variance / (unit * unit));
    deviations.add((shrunk[c].deviation - unit) / unit, deviation.variance / (unit * unit));
  }
  const float of_means = means.factor(groups, 1.0f), of_deviations = deviations.factor(groups, 1.0f);
  for (int32_t c = 0; c < channels; ++c) {
    if (!(reference[c].deviation > 0.0f) || !(shrunk[c].deviation > 0.0f)) continue;
    shrunk[c].mean = reference[c].mean + of_means * (shrunk[c].mean - reference[c].mean);
    shrunk[c].deviation = reference[c].deviation + of_deviations * (shrunk[c].deviation - reference[c].deviation);
  }
}

void shrink_windows(const WindowGroups& windows, const float* reference, const ImageGroups& groups, const float* found,
                    float* shrunk) {
  const int32_t values = windows.values(), all = windows.count * values;
  for (int32_t i = 0; i < all; ++i) {
    shrunk[i] = Pooled(groups, [&](int32_t g) { return found[int64_t{g} * all + i]; }).mean;
  }
  Shrinkage shrinkage;
  for (int32_t k = 0; k < windows.count; ++k) {
    const float known = mean_variance(windows, reference + k * values);
    const float now = mean_variance(windows, shrunk + k * values);
    if (!(known > 0.0f) || !(now > 0.0f)) continue;
    for (int32_t i = k * values; i < (k + 1) * values; ++i) {
      const Pooled relative(groups, [&](int32_t g) { return found[int64_t{g} * all + i] / now; });
      shrinkage.add(relative.mean - reference[i] / known, relative.variance);
    }
  }
  const float factor = shrinkage.factor(groups, window_caution);
  for (int32_t k = 0; k < windows.count; ++k) {
    const float known = mean_variance(windows, reference + k * values);
    const float now = mean_variance(windows, shrunk + k * values);
    if (!(known > 0.0f) || !(now > 0.0f)) continue;
    for (int32_t i = k * values; i < (k + 1) * values; ++i) {
      const float clean = reference[i] / known;
      shrunk[i] = now * (clean + factor * (shrunk[i] / now - clean));
    }
  }
}

}  // namespace pmt
