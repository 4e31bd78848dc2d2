// The core's StatisticsMeter and WindowMeter with their arenas, threads and in-memory images, whose
// activations are kept from layer to layer.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "core/channel_statistics.hpp"
#include "core/window_alignment.hpp"
#include "core/window_statistics.hpp"
#include "host/host_model.hpp"
#include "host/team.hpp"

namespace pmt::host {

class HostStatistics {
 public:
  // Of a layer: what WindowStatistics points to.
  struct Windows {
    std::vector<float> means, values;
  };

  // Shares the model, whose biases and weight scales align() changes in place and nobody else meanwhile.
  // `images`: `count` images int8 NHWC, which outlive this.
  HostStatistics(std::shared_ptr<HostModel> model, const int8_t* images, int32_t count, int32_t threads);

  // Of layer `op`; one guess and one result a channel. Ascending layers take one forward in all.
  std::vector<ChannelStatistics> measure(int32_t op, int32_t rounds, const std::vector<ChannelStatistics>& guess,
                                         std::function<bool()> should_stop);
  void align(int32_t op, const std::vector<ChannelStatistics>& reference, const std::vector<ChannelStatistics>& found);

  // Of the windows of layer `op`, which has some; one centre a channel of its input.
  Windows measure_windows(int32_t op, const std::vector<float>& centres, std::function<bool()> should_stop);
  void align_windows(int32_t op, const Windows& reference, const Windows& found);

  const Model& model() const { return model_->model(); }

 private:
  struct alignas(64) Chunk {
    uint8_t bytes[64];
  };

  template <typename Meter>
  void open(Meter& meter, std::vector<Chunk>& memory);
  void changed(int32_t op);

  std::shared_ptr<HostModel> model_;
  const int8_t* images_;
  std::vector<int8_t> activations_;
  KeptActivations kept_;
  std::function<bool()> should_stop_;
  std::unique_ptr<Team> team_;
  std::vector<Chunk> memory_;
  std::vector<Chunk> window_memory_;
  StatisticsMeter meter_;
  WindowMeter window_meter_;
};

}  // namespace pmt::host
