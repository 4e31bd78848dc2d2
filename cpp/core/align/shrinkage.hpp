// Statistics of new images drawn towards the clean ones as far as their own scatter explains the distance (James and
// Stein 1961, the positive part). A few images differ from clean ones by chance; what differs by chance is not aligned.
#pragma once

#include "core/align/channel_statistics.hpp"
#include "core/align/window_statistics.hpp"
#include "core/base/arithmetic.hpp"

namespace pmt {

// The images in groups, measured one by one: their scatter tells how certain the statistics of all are.
struct ImageGroups {
  static constexpr int32_t usual = 4;  // where there are as many images

  int32_t count;
  const int32_t* images;  // of each group, at least one
};

// `found` [group][channel]; `shrunk` [channel]: the statistics of all images, their means and their deviations each
// drawn towards the reference by one factor for the layer. Of a single group they are the reference's.
void shrink_channels(int32_t channels, const ChannelStatistics* reference, const ImageGroups& groups,
                     const ChannelStatistics* found, ChannelStatistics* shrunk);

// Values that groups of images have found, group after group: their mean over all images, and how much the groups
// scatter around it (West 1979).
class WindowScatter {
 public:
  // Memory of `count` values, which the mean and the scatter take each.
  void begin(float* means, float* squares, int64_t count);
  // `value_at(i)` of the next group.
  template <typename ValueAt>
  void add(int32_t images, const ValueAt& value_at) {
    images_ += images;
    ++groups_;
    const float weight = to_float(images), share = weight / to_float(images_);
    for (int64_t i = 0; i < count_; ++i) {
      const float apart = value_at(i) - means_[i];
      means_[i] += share * apart;
      squares_[i] += weight * apart * (apart - share * apart);
    }
  }

  int32_t groups() const { return groups_; }
  float* means() const { return means_; }
  // Of the mean.
  float variance(int64_t i) const { return squares_[i] / to_float(images_) / to_float(groups_ - 1); }

 private:
  float* means_ = nullptr;
  float* squares_ = nullptr;
  int64_t count_ = 0;
  int32_t images_ = 0, groups_ = 0;
};

// Draws the means, of the values of all groups of channels, towards the reference's: relative to their mean variance,
// by one factor for the layer, twice as far as their scatter explains, for the transport between covariances inverts
// the smallest of their eigenvalues.
void shrink_windows(const WindowGroups& windows, const float* reference, const WindowScatter& found);

}  // namespace pmt
