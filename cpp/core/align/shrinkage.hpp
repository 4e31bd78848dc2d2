// Statistics of new images drawn towards the clean ones as far as their own scatter explains the distance (James and
// Stein 1961, the positive part). A few images differ from clean ones by chance; what differs by chance is not aligned.
#pragma once

#include "core/align/channel_statistics.hpp"
#include "core/align/window_statistics.hpp"

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

// `found` [group of images][values of all groups of channels]. Covariances relative to their mean variance are drawn
// towards the reference's by one factor for the layer, twice as far as their scatter explains: the transport between
// covariances inverts the smallest of their eigenvalues.
void shrink_windows(const WindowGroups& windows, const float* reference, const ImageGroups& groups, const float* found,
                    float* shrunk);

}  // namespace pmt
