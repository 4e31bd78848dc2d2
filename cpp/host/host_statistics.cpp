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

HostStatistics::HostStatistics(std::shared_ptr<HostModel> model, const int8_t* images, int32_t count, int32_t threads)
    : model_(std::move(model)),
      images_(images),
      activations_(static_cast<size_t>(count) * static_cast<size_t>(kept_bytes(model_->model()))),
      kept_{activations_.data(), count} {
  const Access::Shared use(model_->access());
  team_ = std::make_unique<Team>(threads, [this] { return should_stop_ && should_stop_(); });
  open(meter_, memory_);
  open(window_meter_, window_memory_);
}

template <typename Meter>
void HostStatistics::open(Meter& meter, std::vector<Chunk>& memory) {
  const Network& network = model_->network();
  const StatisticsSetup setup = {network.model, network.kernels, team_->executor(), network.packed, &kept_};
  memory.resize(Meter::table_bytes(model_->model()) / sizeof(Chunk) + 1);
  const Status measured = meter.open(setup, memory.data(), memory.size() * sizeof(Chunk));
  if (measured.code != Code::arena_too_small) check(measured);
  memory.resize(meter.bytes_needed() / sizeof(Chunk) + 1);
  check(meter.open(setup, memory.data(), memory.size() * sizeof(Chunk)));
}

// What is kept is before `op`: it stands, unless an op that it has passed changes.
void HostStatistics::changed(int32_t op) {
  if (op < kept_.op) kept_.op = 0;
}

std::vector<ChannelStatistics> HostStatistics::measure(int32_t op, int32_t rounds,
                                                       const std::vector<ChannelStatistics>& guess,
                                                       std::function<bool()> should_stop) {
  const Access::Exclusive use(model_->access());
  should_stop_ = std::move(should_stop);
  Source source = {images_, static_cast<size_t>(element_count(model().input()))};
  std::vector<ChannelStatistics> found(guess.size());
  check(meter_.measure(op, kept_.samples, {&source, read_image}, rounds, guess.data(), found.data()));
  return found;
}

void HostStatistics::align(int32_t op, const std::vector<ChannelStatistics>& reference,
                           const std::vector<ChannelStatistics>& found) {
  const Access::Exclusive use(model_->access());
  align_layer(model(), op, reference.data(), found.data(), model_->aligned_layer(op));
  model_->rescale(op);
  changed(op);
}

HostStatistics::Windows HostStatistics::measure_windows(int32_t op, const std::vector<float>& centres,
                                                        std::function<bool()> should_stop) {
  const Access::Exclusive use(model_->access());
  should_stop_ = std::move(should_stop);
  Source source = {images_, static_cast<size_t>(element_count(model().input()))};
  const WindowGroups groups = window_groups(model(), op);
  Windows found = {std::vector<float>(centres.size()),
                   std::vector<float>(static_cast<size_t>(groups.count) * static_cast<size_t>(groups.values()))};
  check(window_meter_.measure(op, kept_.samples, {&source, read_image}, centres.data(), found.means.data(),
                              found.values.data()));
  return found;
}

void HostStatistics::align_covariances(int32_t op, const Windows& reference, const Windows& found) {
  const Access::Exclusive use(model_->access());
  struct Job {
    const Model& model;
    int32_t op;
    WindowStatistics reference, found;
    AlignedLayer layer;
    std::vector<Chunk> scratch;
    size_t chunks;  // of one worker
  };
  const WindowGroups groups = window_groups(model(), op);
  const Executor executor = team_->executor();
  const size_t chunks = covariance_alignment_bytes(groups) / sizeof(Chunk) + 1;
  Job job = {model(),
             op,
             {reference.means.data(), reference.values.data()},
             {found.means.data(), found.values.data()},
             model_->aligned_layer(op),
             std::vector<Chunk>(chunks * static_cast<size_t>(executor.workers)),
             chunks};
  const auto task = [](void* argument, int32_t group, int32_t worker) {
    Job& j = *static_cast<Job*>(argument);
    Chunk* scratch = j.scratch.data() + j.chunks * static_cast<size_t>(worker);
    pmt::align_covariances(j.model, j.op, group, j.reference, j.found, j.layer, scratch);
  };
  executor.run(executor.context, groups.count, task, &job, false);
  model_->rescale(op);
  changed(op);
}

std::vector<ChannelReliability> HostStatistics::measure_reliability(int32_t op, std::function<bool()> should_stop) {
  const Access::Exclusive use(model_->access());
  should_stop_ = std::move(should_stop);
  Source source = {images_, static_cast<size_t>(element_count(model().input()))};
  if (reliability_memory_.empty()) open(reliability_meter_, reliability_memory_);
  std::vector<ChannelReliability> found(static_cast<size_t>(model().input_of(model().op(op)).channels));
  check(reliability_meter_.measure(op, kept_.samples, {&source, read_image}, found.data()));
  return found;
}

void HostStatistics::weigh_channels(int32_t op, const std::vector<ChannelReliability>& found, float strength) {
  const Access::Exclusive use(model_->access());
  std::vector<float> scratch(static_cast<size_t>(weighing_floats(model(), op)));
  pmt::weigh_channels(model(), op, found.data(), strength, model_->aligned_layer(op), scratch.data());
  model_->rescale(op);
  changed(op);
}

}  // namespace pmt::host
