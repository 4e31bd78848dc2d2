#include "host/host_statistics.hpp"

#include <cstring>

namespace pmt::host {
namespace {

struct Source {
  const int8_t* images;
  size_t elements;
};

bool read_image(void* context, int32_t index, int8_t* image, int32_t* label) {
  const Source& source = *static_cast<Source*>(context);
  std::memcpy(image, source.images + static_cast<size_t>(index) * source.elements, source.elements);
  *label = 0;
  return true;
}

void check(const Status& status) {
  if (!status.ok()) throw StatusError{status};
}

}  // namespace

HostStatistics::HostStatistics(std::shared_ptr<HostModel> model, int32_t threads) : model_(std::move(model)) {
  team_ = std::make_unique<Team>(threads, [this] { return should_stop_ && should_stop_(); });
  const Network& network = model_->network();
  const StatisticsSetup setup = {network.model, network.kernels, team_->executor(), network.packed};
  memory_.resize(StatisticsMeter::table_bytes(model_->model()) / sizeof(Chunk) + 1);
  const Status measured = meter_.open(setup, memory_.data(), memory_.size() * sizeof(Chunk));
  if (measured.code != Code::arena_too_small) check(measured);
  memory_.resize(meter_.bytes_needed() / sizeof(Chunk) + 1);
  check(meter_.open(setup, memory_.data(), memory_.size() * sizeof(Chunk)));
}

std::vector<ChannelStatistics> HostStatistics::measure(int32_t op, const int8_t* images, int32_t count, int32_t rounds,
                                                       const std::vector<ChannelStatistics>& guess,
                                                       std::function<bool()> should_stop) {
  should_stop_ = std::move(should_stop);
  Source source = {images, static_cast<size_t>(element_count(model().input()))};
  std::vector<ChannelStatistics> found(guess.size());
  check(meter_.measure(op, count, {&source, read_image}, rounds, guess.data(), found.data()));
  return found;
}

void HostStatistics::align(int32_t op, const std::vector<ChannelStatistics>& reference,
                           const std::vector<ChannelStatistics>& found) {
  align_layer(model(), op, reference.data(), found.data(), model_->aligned_layer(op));
  model_->rescale(op);
}

}  // namespace pmt::host
