// The core's meters of statistics with their arenas, threads and in-memory images, whose activations are
// kept from layer to layer.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "core/align/channel_reliability.hpp"
#include "core/align/channel_statistics.hpp"
#include "core/align/covariance_alignment.hpp"
#include "core/align/window_statistics.hpp"
#include "host/host_model.hpp"
#include "host/sample_array.hpp"
#include "host/team.hpp"

namespace pmt::host {

class HostStatistics {
 public:
  // The memory that a layer's WindowStatistics points to.
  struct Windows {
    std::vector<float> means, values;
  };

  // Shares the model, whose layers it changes in place. Several may share one, if all go through its layers together,
  // in ascending order; nobody else changes it meanwhile.
  // `images`: `count` images int8 NHWC, which outlive this.
  HostStatistics(std::shared_ptr<HostModel> model, const int8_t* images, int32_t count, int32_t threads);

  // Measures layer `op`; one guess and one result a channel. Ascending layers take one forward in all.
  std::vector<ChannelStatistics> measure(int32_t op, int32_t rounds, const std::vector<ChannelStatistics>& guess,
                                         std::function<bool()> should_stop);
  void align(int32_t op, const std::vector<ChannelStatistics>& reference, const std::vector<ChannelStatistics>& found);

  // Measures the windows of layer `op`, which has some; one center a channel of its input.
  Windows measure_windows(int32_t op, const std::vector<float>& centers, std::function<bool()> should_stop);
  void align_covariances(int32_t op, const Windows& reference, const Windows& found);

  // Measures the input channels of layer `op`, which mixes channels. The images are pairs: one, then the same
  // disturbed.
  std::vector<ChannelReliability> measure_reliability(int32_t op, std::function<bool()> should_stop);
  void weigh_channels(int32_t op, const std::vector<ChannelReliability>& found, float strength);

  const Model& model() const { return model_->model(); }

 private:
  template <typename Meter>
  AlignedMemory open(Meter& meter);
  SampleReader reader() const { return {{images_, nullptr, kept_.samples}, model()}; }
  void changed(int32_t op);

  std::shared_ptr<HostModel> model_;
  const int8_t* images_;
  std::vector<int8_t> activations_;
  KeptActivations kept_;
  std::function<bool()> should_stop_;
  std::unique_ptr<Team> team_;
  AlignedMemory memory_, window_memory_, reliability_memory_;
  StatisticsMeter meter_;
  WindowMeter window_meter_;
  ReliabilityMeter reliability_meter_;
};

}  // namespace pmt::host
