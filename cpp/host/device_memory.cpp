#include "host/device_memory.hpp"

#include <utility>

namespace pmt::host {

DeviceMemory::DeviceMemory(std::shared_ptr<HostModel> model, const TrainerOptions& options, std::vector<int32_t> layers,
                           int32_t batch, std::vector<LayerSettings> settings, const Kernels& kernels,
                           std::optional<std::vector<StreamedOps>> streams)
    : model_(std::move(model)),
      options_(options),
      layers_(std::move(layers)),
      storage_(layers_.size()),
      settings_(std::move(settings)),
      streams_(std::move(streams)) {
  if (!settings_.empty() && settings_.size() != layers_.size()) throw StatusError{{Code::layer_settings}};
  const TrainerSetup all = setup(batch, kernels);
  tables_.resize(Trainer::table_bytes(this->model(), all.layer_count) / sizeof(Chunk) + 1);
  const Status status = trainer_.open(all, tables_.data(), tables_.size() * sizeof(Chunk));
  if (!status.ok() && status.code != Code::arena_too_small) throw StatusError{status};
  plan_ = trainer_.plan();
}

TrainerSetup DeviceMemory::setup(int32_t batch, const Kernels& kernels) const {
  static constexpr StreamedOps none = {};
  TrainerSetup setup = {&model(),
                        &kernels,
                        &options_,
                        layers_.data(),
                        static_cast<int32_t>(layers_.size()),
                        storage_.data(),
                        batch,
                        sequential_executor()};
  setup.settings = settings_.empty() ? nullptr : settings_.data();
  setup.compact = true;
  if (streams_.has_value()) {
    setup.streams = streams_->empty() ? &none : streams_->data();
    setup.stream_count = static_cast<int32_t>(streams_->size());
  }
  return setup;
}

}  // namespace pmt::host
