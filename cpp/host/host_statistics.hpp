// The core's StatisticsMeter with its arena, threads and in-memory images.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "core/channel_statistics.hpp"
#include "host/host_model.hpp"
#include "host/team.hpp"

namespace pmt::host {

class HostStatistics {
 public:
  // Shares the model, whose biases and weight scales align() changes in place.
  HostStatistics(std::shared_ptr<HostModel> model, int32_t threads);

  // Of layer `op` on `count` images int8 NHWC; one guess and one result a channel.
  std::vector<ChannelStatistics> measure(int32_t op, const int8_t* images, int32_t count, int32_t rounds,
                                         const std::vector<ChannelStatistics>& guess,
                                         std::function<bool()> should_stop);
  void align(int32_t op, const std::vector<ChannelStatistics>& reference, const std::vector<ChannelStatistics>& found);

  const Model& model() const { return model_->model(); }

 private:
  struct alignas(64) Chunk {
    uint8_t bytes[64];
  };

  std::shared_ptr<HostModel> model_;
  std::function<bool()> should_stop_;
  std::unique_ptr<Team> team_;
  std::vector<Chunk> memory_;
  StatisticsMeter meter_;
};

}  // namespace pmt::host
