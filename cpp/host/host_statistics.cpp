#include "host/host_statistics.hpp"

namespace pmt::host {

HostStatistics::HostStatistics(std::shared_ptr<HostModel> model, const int8_t* images, int32_t count, int32_t threads)
    : model_(std::move(model)),
      images_(images),
      activations_(static_cast<size_t>(count) * static_cast<size_t>(kept_bytes(model_->model()))),
      kept_{activations_.data(), count} {
  const Access::Shared use(model_->access());
  team_ = std::make_unique<Team>(threads, [this] { return should_stop_ && should_stop_(); });
  memory_ = open(meter_);
  window_memory_ = open(window_meter_);
}

template <typename Meter>
AlignedMemory HostStatistics::open(Meter& meter) {
  const Network& network = model_->network();
  const StatisticsSetup setup = {network.model, network.kernels, team_->executor(), network.packed, &kept_};
  return open_measured(meter, setup, Meter::table_bytes(model()));
}

// The kept activations are those before an op: they stand, unless an op that they have passed changes.
void HostStatistics::changed(int32_t op) {
  if (op < kept_.op) kept_.op = 0;
}

std::vector<ChannelStatistics> HostStatistics::measure(int32_t op, int32_t rounds,
                                                       const std::vector<ChannelStatistics>& guess,
                                                       std::function<bool()> should_stop) {
  const Access::Exclusive use(model_->access());
  should_stop_ = std::move(should_stop);
  SampleReader samples = reader();
  std::vector<ChannelStatistics> found(guess.size());
  check(meter_.measure(op, kept_.samples, samples.source(), rounds, guess.data(), found.data()));
  return found;
}

void HostStatistics::align(int32_t op, const std::vector<ChannelStatistics>& reference,
                           const std::vector<ChannelStatistics>& found) {
  const Access::Exclusive use(model_->access());
  align_layer(model(), op, reference.data(), found.data(), model_->writable_layer(op));
  model_->rescale(op);
  changed(op);
}

HostStatistics::Windows HostStatistics::measure_windows(int32_t op, const std::vector<float>& centers,
                                                        std::function<bool()> should_stop) {
  const Access::Exclusive use(model_->access());
  should_stop_ = std::move(should_stop);
  SampleReader samples = reader();
  const WindowGroups groups = window_groups(model(), op);
  Windows found = {std::vector<float>(centers.size()),
                   std::vector<float>(static_cast<size_t>(groups.count) * static_cast<size_t>(groups.values()))};
  check(window_meter_.measure(op, kept_.samples, samples.source(), centers.data(), found.means.data(),
                              found.values.data()));
  return found;
}

void HostStatistics::align_covariances(int32_t op, const Windows& reference, const Windows& found) {
  const Access::Exclusive use(model_->access());
  const WindowGroups groups = window_groups(model(), op);
  const WindowStatistics wanted = {reference.means.data(), reference.values.data()};
  const WindowStatistics present = {found.means.data(), found.values.data()};
  const WritableLayer layer = model_->writable_layer(op);
  const Executor executor = team_->executor();
  const AlignedMemory scratch(covariance_alignment_bytes(groups), executor.workers);
  executor.for_each(groups.count, false, [&](int32_t group, int32_t worker) {
    pmt::align_covariances(model(), op, group, wanted, present, layer, scratch.data(worker));
  });
  model_->rescale(op);
  changed(op);
}

std::vector<ChannelReliability> HostStatistics::measure_reliability(int32_t op, std::function<bool()> should_stop) {
  const Access::Exclusive use(model_->access());
  should_stop_ = std::move(should_stop);
  SampleReader samples = reader();
  if (reliability_memory_.bytes() == 0) reliability_memory_ = open(reliability_meter_);
  std::vector<ChannelReliability> found(static_cast<size_t>(model().input_of(model().op(op)).channels));
  check(reliability_meter_.measure(op, kept_.samples, samples.source(), found.data()));
  return found;
}

void HostStatistics::weigh_channels(int32_t op, const std::vector<ChannelReliability>& found, float strength) {
  const Access::Exclusive use(model_->access());
  std::vector<float> scratch(static_cast<size_t>(weighing_floats(model(), op)));
  pmt::weigh_channels(model(), op, found.data(), strength, model_->writable_layer(op), scratch.data());
  model_->rescale(op);
  changed(op);
}

}  // namespace pmt::host
