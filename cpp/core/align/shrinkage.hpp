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

// The running mean of each value over groups of images, and the scatter of the groups around it (West 1979): two floats
// a value, unlike the values of all groups, which shrink_channels() takes.
class WindowScatter {
 public:
  // `means` and `squares`: memory for `count` floats each, set to 0 here.
  void begin(float* means, float* squares, int32_t count);
  // Adds the next group, whose value i is value_at(i).
  template <typename ValueAt>
  void add(int32_t images, const ValueAt& value_at) {
    images_ += images;
    ++groups_;
    const float weight = to_float(images), share = weight / to_float(images_);
    for (int32_t i = 0; i < count_; ++i) {
      const float apart = value_at(i) - means_[i];
      means_[i] += share * apart;
      squares_[i] += weight * apart * (apart - share * apart);
    }
  }

  int32_t groups() const { return groups_; }
  float* means() { return means_; }
  // The variance of mean i, by the scatter of the groups; 0 of a single one.
  float variance(int32_t i) const {
    return groups_ < 2 ? 0.0f : squares_[i] / to_float(images_) / to_float(groups_ - 1);
  }

 private:
  float* means_ = nullptr;
  float* squares_ = nullptr;
  int32_t count_ = 0, images_ = 0, groups_ = 0;
};

// Draws the means, of the values of all groups of channels, towards the reference's, relative to their mean variance
// and by one factor for the layer. The factor counts their scatter twice, for the transport between covariances inverts
// their smallest eigenvalues.
void shrink_windows(const WindowGroups& windows, const float* reference, WindowScatter& scatter);

}  // namespace pmt
